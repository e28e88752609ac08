"""The section of the benchmark page about the simulated NPU."""

from benchmarks import report

COUNTS = {
    "when": "2026-01-02",
    "steps": {"a net": [[9, 5, 0, 0], [9, 7, 0, 1]], "another": [[3, 2, 0, 0]] * 2},
}


def test_rows_have_the_range_of_all_processes():
    section = report.npu_section(COUNTS)
    assert "on 2026-01-02, in 2\nprocesses" in section
    assert section.endswith("| a net | 9 | 5 to 7 | 0 | 0 to 1 |\n| another | 3 | 2 | 0 | 0 |\n")


def test_the_section_is_replaced_and_kept():
    page = report.with_npu_section("# Speed\n\ntext\n", COUNTS)
    later = report.with_npu_section(page, {**COUNTS, "when": "2026-03-04"})
    assert later == page.replace("2026-01-02", "2026-03-04")
    assert report.npu_section_of(page) == report.npu_section(COUNTS)
    assert report.npu_section_of("# Speed\n") == ""
