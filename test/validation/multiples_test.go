package validation

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

// TestUsageOfGangsOfAnySizeIsAccepted: the usage of 1 to 10,000 pods of 1Mi to 4Ti each, and of cpu in thousandths, is
// accepted of the operator and of others, in the form in which the operator writes it. A unit more is refused of
// others.
func TestUsageOfGangsOfAnySizeIsAccepted(t *testing.T) {
	s := newServer(t)
	sizes := []string{"1Mi", "48Mi", "1000Mi", "1Gi", "7Gi", "96Gi", "256Gi", "512Gi", "512G", "900Gi", "1Ti", "1800Gi",
		"1900Gi", "2T", "2Ti", "4Ti"}
	write := func(count int, user string, usage []string) error {
		assigned := fmt.Sprintf("yaml:{clusterQueue: cq, podSetAssignments: [{name: main, count: %d, resourceUsage: {%s}}]}",
			count, strings.Join(usage, ", "))
		return s.try(t, "Workload",
			attempt{before: edits{podSet + "count": count}, change: edits{"status>admission": assigned}, user: user})
	}
	for _, count := range []int{1, 2, 3, 7, 48, 60, 64, 72, 97, 120, 128, 144, 250, 400, 500, 512, 999, 1000, 1024, 4096,
		5000, 7919, 9999, 10000} {
		usage := []string{fmt.Sprintf("cpu: %q", resource.NewMilliQuantity(int64(count)*333, resource.DecimalSI))}
		var odd string
		for i, size := range sizes {
			perPod := resource.MustParse(size)
			total := resource.NewQuantity(perPod.Value()*int64(count), perPod.Format)
			name := fmt.Sprintf("example.com/r%d", i)
			switch i % 3 {
			case 0:
				name = "memory"
			case 1:
				name = "ephemeral-storage"
			}
			usage = append(usage, fmt.Sprintf("%s: %q", name, total))
			total.Add(*resource.NewQuantity(1, resource.DecimalSI))
			odd = fmt.Sprintf("%s: %q", name, total)
			if i%3 != 2 && i < len(sizes)-1 {
				continue
			}
			for _, user := range []string{operator, ""} {
				if err := write(count, user, usage); err != nil {
					t.Errorf("%d pods with %q written by %q: %v", count, usage, user, err)
				}
			}
			if err := write(count, "", []string{odd}); (err == nil) != (count == 1) {
				t.Errorf("%d pods with one more than their size, %s: %v, want a refusal of more than one pod", count, odd, err)
			}
			usage = usage[:0]
		}
	}
}
