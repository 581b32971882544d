"""The style and the script of a report's page. They are in the page: it needs no other file and no network."""

STYLE = """
:root{color-scheme:light dark;--back:#f7f7f5;--card:#fff;--text:#1d2329;--soft:#5d6874;--line:#dfe3e6;--main:#2f6db3;
--c0:#2f6db3;--c1:#e08a2e;--c2:#3f9b6c;--c3:#b8508f;--c4:#7a6cc8;--c5:#c4a21f;--c6:#8c98a3}
@media screen and (prefers-color-scheme:dark){:root{--back:#14181c;--card:#1d2329;--text:#e6eaed;--soft:#9aa6b1;--line:#343d45;--main:#6aa6e8;
--c0:#6aa6e8;--c1:#f0a452;--c2:#62c492;--c3:#dd80b6;--c4:#a499ec;--c5:#e0c24b;--c6:#77838e}}
*{box-sizing:border-box}
body{margin:0;background:var(--back);color:var(--text);font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:1180px;margin:0 auto;padding:24px 20px 60px}
h1{font-size:26px;margin:0;line-height:1.25}h2{font-size:17px;margin:0 0 12px}
p{margin:4px 0 0;color:var(--soft);overflow-wrap:anywhere}
.totals{display:grid;grid-template-columns:repeat(auto-fit,minmax(210px,1fr));gap:12px;margin:22px 0}
.totals div,section{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:14px 16px}
.totals b{display:block;font-size:22px;font-weight:650;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
.totals b.long{font-size:15px;line-height:1.35;padding:4px 0}
.totals span,.note{color:var(--soft);font-size:13px}
.grid{display:grid;grid-template-columns:1fr 1fr;gap:16px;align-items:start}
section,.pair{min-width:0}.pair{display:grid;gap:16px}.wide{grid-column:1/-1}
svg{display:block;width:100%;height:190px;border-bottom:1px solid var(--line)}
rect:hover{opacity:.75}
.axis{display:flex;justify-content:space-between;font-size:12px;color:var(--soft);margin-top:4px}
.key{display:flex;flex-wrap:wrap;gap:4px 16px;margin:10px 0 0;padding:0;list-style:none;font-size:13px}
.key li{overflow-wrap:anywhere}.key i{display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:6px}
.bar{display:grid;grid-template-columns:minmax(0,13em) 1fr 6.5em;gap:10px;align-items:center;font-size:13.5px;padding:2px 0}
.bar span{overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.bar i{display:block;height:14px;border-radius:3px;background:var(--main);min-width:2px}
.bar em{font-style:normal;text-align:right;font-variant-numeric:tabular-nums}
.scroll{overflow:auto;max-height:430px}
table{border-collapse:collapse;width:100%;font-size:13.5px}
th,td{padding:5px 8px;text-align:right;border-bottom:1px solid var(--line);font-variant-numeric:tabular-nums;white-space:nowrap}
th:first-child,td:first-child{text-align:left;white-space:normal;overflow-wrap:anywhere;min-width:9em}
th{position:sticky;top:0;background:var(--card);font-weight:600}
th button{all:unset;cursor:pointer}th button:focus-visible{outline:2px solid var(--main)}
th[aria-sort=ascending] button::after{content:" \\2191"}th[aria-sort=descending] button::after{content:" \\2193"}
ul.list{margin:0;padding-left:18px;font-size:13px;overflow-wrap:anywhere}
@media(max-width:760px){main{padding:16px 12px 40px}.grid{grid-template-columns:minmax(0,1fr)}.totals{grid-template-columns:1fr 1fr}
.bar{grid-template-columns:minmax(0,9em) 1fr 4.5em}h1{font-size:21px}.totals b{font-size:18px}.totals b.long{font-size:14px}}
.printed{display:none}
@media print{:root{color-scheme:light}body{background:#fff;font-size:11px}main{max-width:none;padding:0}.grid,.pair{display:block}
.totals{grid-template-columns:repeat(4,1fr);gap:6px;margin:10px 0}.totals div,section{padding:8px 10px}.totals b{font-size:15px}
.totals b.long,.totals span,.note,table,.bar,.key,.axis,ul.list{font-size:10px}h2{font-size:13px;margin:0 0 6px}svg{height:130px}
section{margin-bottom:8px;break-inside:avoid}.long{break-inside:auto;-webkit-box-decoration-break:clone;box-decoration-break:clone}
h2,thead{break-after:avoid}tr{break-inside:avoid}.bar{padding:0;grid-template-columns:minmax(0,22em) 1fr 6.5em}.bar i{height:9px}th,td{padding:2px 6px}th{position:static}th button{display:contents}
.scroll{max-height:none;overflow:visible}.long tbody tr:nth-child(n+41){display:none}.printed{display:block}
rect,i{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
"""
SCRIPT = """
for (const head of document.querySelectorAll("th")) head.querySelector("button").addEventListener("click", () => {
  const table = head.closest("table"), body = table.tBodies[0], column = head.cellIndex;
  const down = head.getAttribute("aria-sort") !== "descending";
  const value = row => { const cell = row.cells[column]; return cell.dataset.n ? Number(cell.dataset.n) : cell.textContent; };
  const order = (a, b) => typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
  const rows = [...body.rows].sort((a, b) => order(value(a), value(b)) * (down ? -1 : 1));
  for (const other of table.querySelectorAll("th")) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  body.append(...rows);
});
"""
