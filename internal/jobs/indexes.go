package jobs

import (
	"iter"
	"strconv"
	"strings"
)

// CountIndexes returns how many indexes below the bound a text such as "1,3-5,7" lists.
func CountIndexes(text string, below int32) int32 {
	var count int32
	for first, last := range Ranges(text) {
		count += max(min(last, below-1)-first+1, 0)
	}
	return count
}

// Ranges visits the ranges of numbers in a text such as 1,3-5: 1 to 1, and 3 to 5. What is no range is passed over.
func Ranges(text string) iter.Seq2[int32, int32] {
	return func(yield func(first, last int32) bool) {
		for part := range strings.SplitSeq(text, ",") {
			from, to, isRange := strings.Cut(part, "-")
			if !isRange {
				to = from
			}
			first, err := strconv.ParseInt(from, 10, 32)
			last, err2 := strconv.ParseInt(to, 10, 32)
			if err == nil && err2 == nil && !yield(int32(first), int32(last)) {
				return
			}
		}
	}
}
