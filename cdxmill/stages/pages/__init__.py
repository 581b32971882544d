"""From a record to a decoded page: HTTP head, encodings, charset, HTML, text, links and language."""
