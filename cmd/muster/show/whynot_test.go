package show

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/musterhq/muster/cmd/muster/view"
	"github.com/musterhq/muster/internal/engine/place/find"
	"github.com/musterhq/muster/internal/engine/reason"
)

func TestBestDomainIsPrintedWithItsShortage(t *testing.T) {
	rack := find.Domain{Level: "example.com/rack", Values: []string{"b1", "r3"}, Fits: 3, Lacks: 1,
		Resource: "nvidia.com/gpu"}
	if got, want := bestOf(&rack, 4), "example.com/rack b1/r3: 3 of 4 pods fit, gpu is short for 1 more"; got != want {
		t.Errorf("best domain = %q, want %q", got, want)
	}
	rack.Resource = "pods"
	if got, want := bestOf(&rack, 4), "example.com/rack b1/r3: 3 of 4 pods fit, pods are short for 1 more"; got != want {
		t.Errorf("best domain = %q, want %q", got, want)
	}
	rack.Resource = "" // as for pods that need a domain of their own
	if got, want := bestOf(&rack, 4), "example.com/rack b1/r3: 3 of 4 pods fit"; got != want {
		t.Errorf("best domain = %q, want %q", got, want)
	}
}

// TestNewNodesExplanationWarnsOfUnenforcedTopology: pods without places may be scheduled far from each other.
func TestNewNodesExplanationWarnsOfUnenforcedTopology(t *testing.T) {
	near := func(of, level string) view.Nearness { return view.Nearness{Of: of, Level: level} }
	for name, tc := range map[string]struct {
		near []view.Nearness
		want string
	}{
		"a required level": {[]view.Nearness{near(view.Required, "block")},
			"its pods have no places: nothing keeps them to one block, as it requires"},
		"a required level and one of slices": {[]view.Nearness{near(view.Required, "block"), near(view.Slice, "rack")},
			"one block or rack, as"},
		"a preferred level":               {[]view.Nearness{near(view.Preferred, "block")}, ""},
		"exclusive placement of each Job": {[]view.Nearness{near(view.Slice, "rack"), near(view.Exclusive, "rack")}, ""},
	} {
		var text strings.Builder
		if err := Explanation(&text,
			&view.Explanation{NewNodes: true, Asks: []view.Ask{{PodSet: "main", Pods: 2, Near: tc.near}}}); err != nil {
			t.Fatal(err)
		}
		if said := strings.Contains(text.String(), "no places"); said != (tc.want != "") ||
			!strings.Contains(text.String(), tc.want) {
			t.Errorf("%s: explanation =\n%s", name, text.String())
		}
	}
}

// TestExplanationSaysWhatALostPodWaitsFor, and that the others go on.
func TestExplanationSaysWhatALostPodWaitsFor(t *testing.T) {
	var text strings.Builder
	e := &view.Explanation{Titles: map[string]string{"ns/w": "ns/job/low"},
		Replacing: &reason.Replacing{Pods: 1, Lost: []string{"n1"}, Awaits: []reason.Name{{Namespace: "ns", Name: "w"}}}}
	if err := Explanation(&text, e); err != nil {
		t.Fatal(err)
	}
	if want := "1 pod on n1, the other pods go on; other places are promised, still in use by ns/job/low\n"; !strings.Contains(
		text.String(), want) {
		t.Errorf("explanation =\n%s\nwant a line with %q", text.String(), want)
	}
}

// TestPositionMentionsOrderByUsage: otherwise a user could not see why jobs of lower priority are ahead.
func TestPositionMentionsOrderByUsage(t *testing.T) {
	e := &view.Explanation{
		Job:    view.Job{Queue: "gpu", Priority: 10},
		Line:   &view.Line{ClusterQueue: "lab", Position: 2, Length: 9},
		WhyNot: &reason.Explanation{ByUsage: true, Since: time.Date(2025, 6, 1, 14, 2, 0, 0, time.UTC)},
	}
	want := "gpu of ClusterQueue lab (position 2 of 9, LocalQueues that have used less come first, then priority 10, since 2025-06-01 14:02:00 UTC)"
	if got := placeInLine(e); got != want {
		t.Errorf("position = %s, want %s", got, want)
	}
}

// TestRefusingFlavorIsNotMarkedNearest: none of the flavors that refuse the pods is nearer than another.
func TestRefusingFlavorIsNotMarkedNearest(t *testing.T) {
	refuses := func(name string, nearest bool) reason.FlavorVerdict {
		return reason.FlavorVerdict{Flavor: name, Fit: reason.Refused, Nearest: nearest, Message: "another label"}
	}
	e := &view.Explanation{WhyNot: &reason.Explanation{PodSets: []reason.PodSet{{Name: "main",
		Flavors: []reason.FlavorVerdict{refuses("a", true), refuses("b", false)}}}}}
	var text strings.Builder
	whyNot(&text, e)
	want := `  flavor    a         another label
            b         another label
`
	if text.String() != want {
		t.Errorf("got\n%s\nwant\n%s", text.String(), want)
	}
}

// TestUnlimitedQuotaIsPrintedWithoutNumbers: the nominal quota of an unlimited queue has no meaning.
func TestUnlimitedQuotaIsPrintedWithoutNumbers(t *testing.T) {
	fits := &reason.FlavorVerdict{Flavor: "default", Fit: reason.Fits,
		Amounts: []reason.Amount{{Resource: "pods", Free: resource.MustParse("999999999999999994")}}}
	if got, want := flavorSays(&view.Explanation{Unlimited: true}, fits), "fits: its quota is without limit"; got != want {
		t.Errorf("flavor line = %q, want %q", got, want)
	}
	var text strings.Builder
	quotaAndHolders(&text,
		&view.Explanation{Quotas: []view.Quota{{Flavor: "default", Resource: "nvidia.com/gpu",
			Nominal: resource.MustParse("1E"), Unlimited: true}}})
	if want := "  quota     gpu without limit in flavor default\n"; text.String() != want {
		t.Errorf("quota line = %q, want %q", text.String(), want)
	}
}

func TestPodSetsThatFitOnlyAloneAreExplained(t *testing.T) {
	short := find.Shortfall{Topology: "dc", Together: true, Nodes: 32}
	leader, workers := find.AskDiagnosis{Shortfall: short}, find.AskDiagnosis{Shortfall: short}
	leader.PodSet, workers.PodSet = "leader", "workers"
	workers.Excluded = []find.Excluded{{Filter: "cordoned", Nodes: 4}}
	var text strings.Builder
	together(&text, &find.Diagnosis{PodSets: []find.AskDiagnosis{leader, workers},
		Relaxation: "pod sets \"leader\", \"workers\" within one block rather than one rack"})
	want := `  together  leader: topology "dc" allows to fit each pod set alone, but not all together. Total nodes: 32
            workers: topology "dc" allows to fit each pod set alone, but not all together. Total nodes: 32; excluded: cordoned: 4
    change  it would fit: pod sets "leader", "workers" within one block rather than one rack
`
	if text.String() != want {
		t.Errorf("got\n%s\nwant\n%s", text.String(), want)
	}
}

// TestNoRelaxationOfAJobThatIsTooLarge: it would not be admitted after that change either.
func TestNoRelaxationOfAJobThatIsTooLarge(t *testing.T) {
	for fit, want := range map[reason.Fit]bool{reason.TooLarge: false, reason.Short: true, reason.Fits: true} {
		var text strings.Builder
		onNodes(&text, &reason.FlavorVerdict{Fit: fit, Nodes: &find.Diagnosis{
			PodSets:    []find.AskDiagnosis{{Shortfall: find.Shortfall{Topology: "dc", Count: 3, Nodes: 17}}},
			Relaxation: "fewer pods"}})
		if !strings.Contains(text.String(), "  nodes   topology") || strings.Contains(text.String(), "fewer pods") != want {
			t.Errorf("%s: nodes =\n%s", fit, text.String())
		}
	}
}

// TestNextOfARefusedAdmission: the events of the job say who refuses it.
func TestNextOfARefusedAdmission(t *testing.T) {
	refused := reason.RefusedAdmission("a policy says no")
	e := &view.Explanation{
		Job: view.Job{Namespace: "ns", Name: "denied", Kind: "Job", APIGroup: "batch", State: view.Pending, Queue: "q",
			Workload: "job-denied"},
		WhyNot: &reason.Explanation{Code: refused.Code, Message: refused.Message()},
	}
	if got, want := nextCommand(e), "muster kubectl describe -n ns job/denied"; got != want {
		t.Errorf("next = %s, want %s", got, want)
	}
}

// TestExplanationSaysWhenAJobStarts: a promise, a planned start and a mere expectation are told apart, and a job that
// is held back is told for whom.
func TestExplanationSaysWhenAJobStarts(t *testing.T) {
	at := time.Date(2026, 3, 4, 14, 20, 0, 0, time.UTC)
	other := reason.Name{Namespace: "ns", Name: "w"}
	for name, tc := range map[string]struct {
		x    reason.Explanation
		want string
	}{
		"promised": {reason.Explanation{Start: &reason.Start{At: at, Promised: true, Reserved: true,
			After: []reason.Name{other}}}, "by 2026-03-04 14:20:00 UTC, which is promised, once ns/job/other ended\n"},
		"planned": {reason.Explanation{Start: &reason.Start{At: at, Reserved: true}}, "about 2026-03-04 14:20:00 UTC\n"},
		"expected": {reason.Explanation{Start: &reason.Start{At: at}},
			"not before about 2026-03-04 14:20:00 UTC, and later if other jobs come first\n"},
		"held back": {reason.Explanation{Delays: &reason.Delayed{Name: other, At: at, Promised: true}},
			"ns/job/other: there is capacity now, but this job would delay its start, promised for 2026-03-04 14:20:00 UTC\n"},
	} {
		var text strings.Builder
		e := &view.Explanation{Titles: map[string]string{"ns/w": "ns/job/other"}, WhyNot: &tc.x}
		if start(&text, e); !strings.Contains(text.String(), tc.want) {
			t.Errorf("%s: explanation =\n%s\nwant a line with %q", name, text.String(), tc.want)
		}
	}
}
