"""Each statement of SECURITY.md has a test. One that nothing can test says why."""

from __future__ import annotations

import ast
import re

import pytest

from .pages import ROOT

TESTS: dict[str, str] = {
    "What **you** name may be anywhere": "inputs/test_archive_store.py::test_the_user_may_name_an_archive_anywhere",
    "So do not run cdxmill on a manifest": "advice",
    "What **others** wrote is content.": "as the table says",
    "It may name only these places": "as the table says",
    "| content | may lead to": "the head of the table",
    "| the file name in an index line": "inputs/test_archive_store.py::test_lines_do_not_lead_out_of_the_places_of_the_user",
    "| `cluster.loc` of a local cluster": "search/test_led_shards.py::test_no_cluster_leads_to_a_link_local_address",
    "| `cluster.loc` of a remote cluster": "search/test_led_shards.py::test_a_remote_cluster_does_not_lead_to_local_files "
    "search/test_led_shards.py::test_a_remote_cluster_causes_no_request_with_the_keys_of_the_user "
    "search/test_led_shards.py::test_a_public_cluster_does_not_lead_to_internal_addresses",
    "| `archives.tsv` of a cluster": "cluster/test_archive_index.py::test_the_list_of_a_remote_cluster_does_not_lead_to_local_files",
    "| a redirect of a web server": "storage/test_reach.py::test_a_redirect_does_not_leave_the_web "
    "storage/test_reach.py::test_a_redirect_does_not_leave_tls "
    "storage/test_reach.py::test_a_public_server_does_not_redirect_to_an_internal_address "
    "storage/test_reach.py::test_a_redirect_never_leads_to_a_link_local_address "
    "storage/test_http_way.py::test_redirects_that_never_end_are_told",
    "| a WebHDFS name node": "storage/test_hdfs.py::test_a_name_node_does_not_lead_to_a_link_local_address",
    "*Internal* addresses are": "storage/test_reach.py::test_addresses_are_allowed_by_reach",
    "*Link-local* here includes": "storage/test_reach.py::test_addresses_are_allowed_by_reach",
    "cdxmill checks the address of the open connection": "storage/test_reach.py::test_a_redirect_never_leads_to_a_link_local_address",
    "So a host name that changes": "follows from the sentence before",
    "If a proxy is set": "storage/test_http_way.py::test_a_proxy_is_used_and_spared_as_the_environment_says",
    "Then cdxmill checks only": "storage/test_reach.py::test_no_request_is_sent_to_an_address_of_a_cloud",
    "An absolute local path in": "search/test_led_shards.py::test_verify_reports_local_paths_of_a_remote_cluster",
    "`zipnum` writes one.": "search/test_led_shards.py::test_verify_reports_local_paths_of_a_remote_cluster",
    "It is skipped, because": "search/test_led_shards.py::test_a_remote_cluster_does_not_lead_to_local_files",
    "`serve` applies these rules": "serving/test_serve_reach.py::test_an_index_line_does_not_lead_pywb_out_of_the_archives "
    "serving/test_serve_reach.py::test_cluster_loc_does_not_lead_pywb_further_than_lookup",
    "A configuration that you write": "pywb alone reads it",
    "Symbolic links below a directory": "inputs/test_directories.py::test_links_to_directories_are_followed_and_circles_end",
    "The files of a cluster on disk": "says what is not checked",
    "cdxmill sends no credentials": "storage/test_reach.py::test_a_password_of_netrc_is_not_sent",
    "It ignores a user name": "storage/test_reach.py::test_a_password_in_a_url_is_not_sent",
    "For S3, boto3 signs": "storage/test_s3.py::test_with_credentials_reads_are_signed",
    "| what a server or a file may do": "the head of the table",
    "| not answer, or answer slowly": "storage/test_http_truth.py::test_a_server_that_never_answers_is_given_up_in_time "
    "storage/test_http_truth.py::test_patience_is_a_number_of_seconds "
    "storage/test_http_trouble.py::test_a_server_that_stays_in_trouble_is_given_up",
    "| refuse, or be down": "storage/test_guest.py::test_a_server_that_refuses_three_files_is_left_alone "
    "storage/test_guest.py::test_a_dead_server_is_given_up_once",
    "| send a large file where": "storage/test_location.py::test_a_file_that_is_too_large_to_be_a_small_one_is_refused",
    "| send a large answer of WebHDFS": "storage/test_hdfs.py::test_a_large_answer_is_an_error",
    "| send large headers": "storage/test_http_trouble.py::test_large_headers_are_an_error",
    "| send a large file without ranges": "storage/test_http_whole.py::test_a_temporary_file_that_cannot_be_created_leaves_no_connection_open",
    "| send bytes that are not": "storage/test_http.py::test_a_range_that_was_not_asked_for_is_refused "
    "storage/test_http.py::test_a_file_that_changes_while_it_is_read_is_refused "
    "storage/test_http_truth.py::test_an_encoding_that_is_not_that_of_the_stored_file_is_refused",
    "The lookup cache keeps only": "storage/test_http_truth.py::test_a_compressed_page_of_an_index_does_not_get_into_the_cache",
    "There is no bound": "says what is not checked",
    "For hostile archives": "reliability/test_memory.py::test_memory_is_flat "
    "reliability/test_growth.py::test_time_grows_with_the_size_only",
    "A page with many nested": "stages/pages/test_nesting.py::test_the_time_for_nested_elements_is_bounded",
    "What an HTML library or": "commands/test_scan.py::test_a_function_that_does_harm_costs_only_its_record",
    "[reliability.md]": "a link",
    "A record that cdxmill prints": "says what is not checked",
    "Errors and notes on the terminal": "test_messages.py::test_every_command_shows_names_escaped",
    "`get` prints records": "advice",
    "The same holds for [CSV": "advice",
    "cdxmill runs no code": "commands/test_scan.py::test_a_file_of_the_working_directory_is_no_library",
    "It unpacks no file": "reliability/test_wacz_mutants.py::test_no_record_of_a_damaged_wacz_is_lost_silently "
    "outputs/test_names.py::test_every_name_is_the_name_of_a_file",
    "A WACZ is read in place": "storage/test_wacz.py::test_only_a_part_of_a_large_wacz_is_read",
}
"""The start of a statement, and its tests, or why it has none."""


def statements() -> list[str]:
    """The sentences and rows of the page, behind the part about reports."""
    text = (ROOT / "SECURITY.md").read_text().partition("## Which places")[2]
    found = list[str]()
    for block in text.split("\n\n")[1:]:
        if block.startswith("|"):
            found += [row for row in block.splitlines() if not row.startswith("|---")]
        elif not block.startswith("#"):
            found += re.split(r"(?<=[.:]) (?=[A-Z*`\[]|cdxmill )", " ".join(block.split()))
    return found


def test_each_statement_has_tests_or_a_reason_for_none() -> None:
    starts = {start: [one for one in statements() if one.startswith(start)] for start in TESTS}
    assert {start: found for start, found in starts.items() if len(found) != 1} == {}
    assert [one for one in statements() if not one.startswith(tuple(TESTS))] == []


@pytest.mark.parametrize(
    "test", sorted({name for names in TESTS.values() for name in names.split() if "::" in name})
)
def test_the_test_exists(test: str) -> None:
    path, _, name = test.partition("::")
    tree = ast.parse((ROOT / "tests" / path).read_text())
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
