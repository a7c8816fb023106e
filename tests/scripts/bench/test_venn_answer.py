"""The cost of a Venn-Abers answer is measured beside the batch fit's, which must agree with it."""

from scripts.bench import venn_answer


def test_the_cost_of_each_size_is_printed_beside_the_batch_fit() -> None:
    found = list(venn_answer.run(sizes=(30, 60), answers=40, repeats=1))
    assert [cost.size for cost in found] == [30, 60]
    assert all(cost.plain()["ratio"] == cost.batch / cost.step > 0 for cost in found)
    assert "batch fit" in str(found[0])
