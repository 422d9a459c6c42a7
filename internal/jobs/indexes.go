package jobs

import (
	"strconv"
	"strings"
)

// CountIndexes returns how many indexes below the bound a text such as "1,3-5,7" lists.
func CountIndexes(text string, below int32) int32 {
	var count int32
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err := strconv.ParseInt(from, 10, 32)
		if err != nil {
			continue
		}
		last, err := strconv.ParseInt(to, 10, 32)
		if err != nil {
			continue
		}
		count += max(min(int32(last), below-1)-int32(first)+1, 0)
	}
	return count
}
