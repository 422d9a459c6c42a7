package command

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/musterhq/muster/cmd/muster/view"
)

// Names are texts of users, and may be amounts that take practically forever to parse or to compare.
func TestSortingByTextsThatAreExtremeAmountsEnds(t *testing.T) {
	jobs := []view.Job{{Name: "1e-2147483647"}, {Name: "1e2147483647"}, {Name: "0e2147483647"},
		{Name: "1e999"}, {Name: "1"}}
	sorter, err := newSorter(".name")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- sortValues(sorter, jobs) }()
	select {
	case err := <-done:
		if err != nil || jobs[0].Name != "1" || jobs[1].Name != "1e999" {
			t.Errorf("sorted: %v, error %v, want amounts before texts", jobs, err)
		}
	case <-time.After(20 * time.Second):
		t.Error("no end after 20 s")
	}
}

func TestSortValues(t *testing.T) {
	wait := int64(9)
	asks := func(cpu string) corev1.ResourceList { return corev1.ResourceList{"cpu": resource.MustParse(cpu)} }
	jobs := []view.Job{{Name: "a", Priority: 10, WaitSeconds: &wait, Requests: asks("16")},
		{Name: "b", Priority: 9, Requests: asks("400m")}, {Name: "c", Priority: 10, Requests: asks("4")}}
	tests := []struct {
		name, field string
		want        []string
		code        int
	}{
		{"no field", "", []string{"a", "b", "c"}, exitDone},
		{"numbers", ".priority", []string{"b", "a", "c"}, exitDone},
		{"a missing field comes first", "{.waitSeconds}", []string{"b", "c", "a"}, exitDone},
		{"amounts", ".requests.cpu", []string{"b", "c", "a"}, exitDone},
		{"texts", "name", []string{"a", "b", "c"}, exitDone},
		{"an unknown field", ".nope", nil, exitUsage},
		{"an invalid path", ".a[", nil, exitUsage},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			sorted := append([]view.Job{}, jobs...)
			sorter, err := newSorter(test.field)
			if err == nil {
				err = sortValues(sorter, sorted)
			}
			if test.code != exitDone {
				if err == nil || exitCode(err) != test.code {
					t.Errorf("error %v, want exit code %d", err, test.code)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, job := range sorted {
				got = append(got, job.Name)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("order differs (-want +got):\n%s", diff)
			}
		})
	}
}
