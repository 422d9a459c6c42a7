package record

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/fair"
	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
)

// zone is a zone other than UTC: events may have times in the local zone.
var zone = time.FixedZone("somewhere", 7200)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 123, zone)

// world is an engine under random events that writes a log.
type world struct {
	*rapid.T
	engine *engine.Engine
	log    *Log
	file   bytes.Buffer
	clock  time.Time
	jobs   []engine.WorkloadSet
	open   []engine.Decision
	// topology is the topology of the flavor default, "" if there is none.
	topology string
}

func (w *world) begin() {
	options := engine.Options{
		IgnoreUndeclared:  rapid.Bool().Draw(w.T, "undeclared resources are ignored"),
		CheckWaitingEvery: time.Duration(rapid.IntRange(0, 2).Draw(w.T, "seconds between checks")) * time.Second,
		BlockUntilReady:   engine.Block(rapid.IntRange(0, 2).Draw(w.T, "block")),
	}
	if rapid.Bool().Draw(w.T, "fair") {
		options.FairSharing = &engine.FairSharing{Strategies: []preempt.Strategy{preempt.LessThanOrEqualToFinalShare,
			preempt.LessThanInitialShare}}
	}
	if rapid.Bool().Draw(w.T, "by use") {
		options.AdmissionFairSharing = &engine.AdmissionFairSharing{HalfLife: time.Minute, Interval: 5 * time.Second,
			Weights: map[string]float64{"nvidia.com/gpu": 1.1}}
	}
	w.engine = engine.New(options)
	var err error
	if w.log, err = Begin(&w.file, options); err != nil {
		w.Fatal(err)
	}
	if rapid.Bool().Draw(w.T, "on nodes") {
		w.topology = "racks"
		w.apply(engine.TopologySet{Topology: place.Topology{Name: "racks", Levels: []string{"rack", place.Hostname}}})
		for _, name := range nodeNames {
			w.setNode(name)
		}
	}
	w.apply(engine.FlavorSet{Flavor: engine.Flavor{Name: "default", NodeLabels: map[string]string{"tier": "a"},
		Topology: w.topology}})
	w.apply(engine.FlavorSet{Flavor: engine.Flavor{Name: "spot", NodeLabels: map[string]string{"tier": "b"},
		NodeTaints: []corev1.Taint{{Key: "spot", Effect: corev1.TaintEffectNoSchedule}}}})
	w.apply(engine.CohortSet{Cohort: engine.Cohort{Name: "lab"}})
	w.apply(engine.NamespaceSet{Name: "ns", Labels: labels.Set{"team": "x"}})
	for _, name := range []string{"p", "q"} {
		w.setQueue(name)
		w.apply(engine.LocalQueueSet{LocalQueue: engine.LocalQueue{Key: engine.Key{Namespace: "ns", Name: name},
			ClusterQueue: name,
			Weight:       ptr.To(quota.One / 3), Consumed: fair.Consumption{"nvidia.com/gpu": 0.1 + 0.2}, ConsumedAt: epoch}})
		w.apply(engine.LocalQueueSet{LocalQueue: engine.LocalQueue{Key: engine.Key{Namespace: "ns", Name: "other"},
			ClusterQueue: "p"}})
	}
}

func (w *world) apply(ev engine.Event) {
	if err := w.log.Event(ev); err != nil {
		w.Fatal(err)
	}
	w.engine.Apply(ev)
}

func (w *world) setQueue(name string) {
	limits := func(flavor string) quota.Limits {
		return quota.Limits{Nominal: rapid.Int64Range(0, 8).Draw(w.T, flavor+" of "+name), Borrowing: quota.Unlimited,
			Lending: quota.Unlimited}
	}
	w.apply(engine.ClusterQueueSet{ClusterQueue: engine.ClusterQueue{
		Name: name, Cohort: "lab", Strategy: engine.Strategy(rapid.IntRange(0, 2).Draw(w.T, "strategy")),
		Groups: []flavor.Group{{Resources: []string{"nvidia.com/gpu"}, Flavors: []string{"spot", "default"}}},
		Quotas: quota.Quotas{
			{Flavor: "default", Resource: "nvidia.com/gpu"}: limits("default"),
			{Flavor: "spot", Resource: "nvidia.com/gpu"}:    limits("spot"),
		},
		Namespaces: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "x"}},
		Preemption: preempt.Policy{WithinQueue: preempt.Rule(rapid.IntRange(0, 2).Draw(w.T, "within")),
			Reclaim: preempt.Rule(rapid.IntRange(0, 3).Draw(w.T, "reclaim"))},
		ByUsage: rapid.Bool().Draw(w.T, "orders by use"),
		Weight:  ptr.To(quota.Weight(rapid.Int64Range(0, 3e9).Draw(w.T, "weight"))),
		Checks:  []engine.Check{{Name: "budget", Flavors: []string{"spot"}}},
	}})
}

var nodeNames = []string{"n0", "n1", "n2"}

func (w *world) setNode(name string) {
	w.apply(engine.NodeSet{Node: place.Node{
		Name: name,
		Labels: map[string]string{"tier": "a", "rack": rapid.SampledFrom([]string{"r0", "r1"}).Draw(w.T, "rack"),
			place.Hostname: name},
		Taints: rapid.SampledFrom([][]corev1.Taint{nil, nil, {{Key: "spot", Effect: corev1.TaintEffectNoSchedule}}}).
			Draw(w.T, "taints"),
		Allocatable: map[string]int64{"nvidia.com/gpu": rapid.Int64Range(0, 6).Draw(w.T, "gpu of "+name), place.Pods: 4},
		Cordoned:    rapid.IntRange(0, 7).Draw(w.T, "cordoned") == 0, Failed: rapid.IntRange(0, 7).Draw(w.T, "failed") == 0,
	}})
}

// nodeStep makes one random change of nodes or pods.
func (w *world) nodeStep() {
	on := rapid.SampledFrom(nodeNames).Draw(w.T, "node")
	pod := engine.Key{Namespace: "ns", Name: fmt.Sprint("pod-", rapid.IntRange(0, 5).Draw(w.T, "pod"))}
	switch rapid.IntRange(0, 6).Draw(w.T, "kind on nodes") {
	case 0, 1:
		w.setNode(on)
	case 2:
		w.apply(engine.NodeDeleted{Name: on})
	case 3, 4:
		bound := place.Pod{Key: pod, Node: on,
			Requests:  map[string]int64{"nvidia.com/gpu": rapid.Int64Range(0, 3).Draw(w.T, "gpu of a pod")},
			HostPorts: rapid.SampledFrom([][]place.HostPort{nil, {{Protocol: corev1.ProtocolTCP, Port: 80}}}).Draw(w.T, "ports")}
		if len(w.jobs) > 0 && rapid.Bool().Draw(w.T, "of a workload") {
			bound.Workload, bound.PodSet = rapid.SampledFrom(w.jobs).Draw(w.T, "workload of the pod").Key, "main"
		}
		w.apply(engine.PodBound{Pod: bound})
	case 5:
		w.apply(engine.PodGone{Key: pod})
	case 6:
		if len(w.jobs) > 0 {
			w.apply(engine.PodUnschedulable{Workload: rapid.SampledFrom(w.jobs).Draw(w.T, "workload of the pod").Key, Node: on})
		}
	}
}

func (w *world) job() engine.WorkloadSet {
	n := len(w.jobs)
	ps := engine.PodSet{Name: "main", Count: rapid.Int32Range(1, 4).Draw(w.T, "pods"),
		PerPod: map[string]int64{"nvidia.com/gpu": rapid.Int64Range(0, 3).Draw(w.T, "gpu")}}
	if rapid.Bool().Draw(w.T, "tolerates spot") {
		ps.Tolerations = []corev1.Toleration{{Key: "spot", Operator: corev1.TolerationOpExists}}
	}
	if rapid.Bool().Draw(w.T, "selects") {
		ps.NodeSelector = map[string]string{"tier": "a"}
	}
	if w.topology != "" && rapid.Bool().Draw(w.T, "in one rack") {
		ps.Topology = &flavor.TopologyRequest{Level: "rack", Mandatory: rapid.Bool().Draw(w.T, "must be")}
	}
	return engine.WorkloadSet{Workload: engine.Workload{
		Key: engine.Key{Namespace: "ns", Name: fmt.Sprintf("j%d", n)}, UID: fmt.Sprint(n),
		Queue:    rapid.SampledFrom([]string{"p", "q", "other", "nowhere"}).Draw(w.T, "queue"),
		Priority: rapid.Int32Range(-1, 1).Draw(w.T, "priority"),
		QueuedAt: epoch.Add(time.Duration(n/2) * time.Second), PodSets: []engine.PodSet{ps},
	}}
}

func (w *world) step() {
	kind := rapid.IntRange(0, 9).Draw(w.T, "kind")
	switch {
	case w.topology != "" && rapid.IntRange(0, 2).Draw(w.T, "on nodes") == 0:
		w.nodeStep()
	case kind < 4 || len(w.jobs) == 0:
		w.jobs = append(w.jobs, w.job())
		w.apply(w.jobs[len(w.jobs)-1])
	case kind == 4:
		w.apply(engine.WorkloadGone{Key: rapid.SampledFrom(w.jobs).Draw(w.T, "gone").Key})
	case kind == 5:
		w.setQueue("p")
	case kind == 6 && len(w.open) > 0:
		d := w.open[0]
		w.open = w.open[1:]
		w.apply(rapid.SampledFrom([]engine.Event{
			engine.Written{Key: d.Key, UID: d.UID, Version: 7}, engine.Failed{Key: d.Key, UID: d.UID},
			engine.Refused{Key: d.Key, UID: d.UID, Generation: d.Generation, Message: "no <room>"},
		}).Draw(w.T, "answer"))
	default:
		w.clock = w.clock.Add(time.Second)
		decisions := w.engine.Decide(w.clock)
		if err := w.log.Pass(w.clock, decisions); err != nil {
			w.Fatal(err)
		}
		for _, d := range decisions {
			if d.Admit != nil || d.Evict != nil || d.Replace != nil {
				w.open = append(w.open, d)
			}
		}
		if missed, checked := w.engine.CheckWaiting(w.clock); checked {
			if err := w.log.Check(w.clock, missed); err != nil {
				w.Fatal(err)
			}
		}
	}
}

// TestLogReplays: an engine that gets the events of the log makes the same decisions, byte for byte (E5).
func TestLogReplays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{T: t, clock: epoch}
		runs := rapid.IntRange(1, 2).Draw(t, "runs")
		for range runs {
			w.begin()
			for range rapid.IntRange(1, 40).Draw(t, "events") {
				w.step()
			}
		}
		got, err := Replay(&w.file)
		if err != nil {
			t.Fatal(err)
		}
		if got.Difference != nil || got.Runs != runs {
			t.Fatalf("got %+v, first difference %+v", got, got.Difference)
		}
	})
}

// smallLog returns a log of one run with one admission.
func smallLog(t *testing.T) string {
	t.Helper()
	var file bytes.Buffer
	log, err := Begin(&file, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New(engine.Options{})
	gpus := quota.Quotas{{Flavor: "default", Resource: "nvidia.com/gpu"}: {Nominal: 1, Borrowing: quota.Unlimited,
		Lending: quota.Unlimited}}
	for _, ev := range []engine.Event{
		engine.FlavorSet{Flavor: engine.Flavor{Name: "default"}},
		engine.ClusterQueueSet{ClusterQueue: engine.ClusterQueue{Name: "q", Quotas: gpus, Namespaces: &metav1.LabelSelector{},
			Groups: []flavor.Group{{Resources: []string{"nvidia.com/gpu"}, Flavors: []string{"default"}}}}},
		engine.LocalQueueSet{LocalQueue: engine.LocalQueue{Key: engine.Key{Namespace: "ns", Name: "q"}, ClusterQueue: "q"}},
		engine.WorkloadSet{Workload: engine.Workload{Key: engine.Key{Namespace: "ns", Name: "a"}, UID: "1",
			Queue: "q", QueuedAt: epoch,
			PodSets: []engine.PodSet{{Name: "main", Count: 1, PerPod: map[string]int64{"nvidia.com/gpu": 1}}}}},
	} {
		if err := log.Event(ev); err != nil {
			t.Fatal(err)
		}
		e.Apply(ev)
	}
	if err := log.Pass(epoch, e.Decide(epoch)); err != nil {
		t.Fatal(err)
	}
	return file.String()
}

// TestReplayComparesChecks: a check that finds other workloads than the recorded one is a difference.
func TestReplayComparesChecks(t *testing.T) {
	log := smallLog(t) + `{"check":"2026-01-01T00:00:01Z","missed":[{"Namespace":"ns","Name":"b"}]}` + "\n"
	got, err := Replay(strings.NewReader(log))
	if err != nil || got.Difference == nil || got.Difference.Recorded != "[ns/b]" || got.Difference.Replayed != "[]" {
		t.Errorf("replay = %+v, %v, want ns/b recorded and nobody replayed", got.Difference, err)
	}
}

func TestReplay(t *testing.T) {
	whole := smallLog(t)
	tests := []struct {
		name, log string
		want      Result
		err       string
	}{
		{"an empty log", "", Result{}, ""},
		{"one run", whole, Result{Runs: 1, Passes: 1, Decisions: 1}, ""},
		{"two runs in one file", whole + whole, Result{Runs: 2, Passes: 2, Decisions: 2}, ""},
		{"a writer killed within its last line", whole[:len(whole)-5], Result{Runs: 1}, ""},
		{"a writer killed within its last line, and restarted", whole[:len(whole)-5] + whole,
			Result{Runs: 2, Passes: 1, Decisions: 1}, ""},
		{"a check that missed nothing", whole + `{"check":"2026-01-01T00:00:01Z"}` + "\n",
			Result{Runs: 1, Passes: 1, Decisions: 1}, ""},
		{"a run that was cut", whole + `{"cut":"slow disk"}` + "\n",
			Result{Runs: 1, Passes: 1, Decisions: 1, Cut: "slow disk"}, ""},
		{"a damaged line in the middle of a run", strings.Replace(whole, `{"event"`, `{"evnt`, 1), Result{Runs: 1},
			"line 3 of the decision log"},
		{"another format", strings.Replace(whole, `"format":4`, `"format":1`, 1), Result{}, "use the version that wrote it"},
		{"a file that is not a log", `{"kind":"List"}` + "\n", Result{}, "does not begin with the options"},
		{"an unknown event", strings.Replace(whole, `"FlavorSet"`, `"FlavourSet"`, 1), Result{Runs: 1},
			`there is no event "FlavourSet"`},
		{"another decision", strings.Replace(whole, `"ClusterQueue":"q","PodSets":[{"PodSet"`,
			`"ClusterQueue":"r","PodSets":[{"PodSet"`, 1),
			Result{Runs: 1, Passes: 1, Decisions: 1, Difference: &Difference{Line: 7, At: epoch}}, ""},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got, err := Replay(strings.NewReader(tc.log))
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("error %v, want %q", err, tc.err)
			}
			if d := got.Difference; d != nil {
				if !strings.Contains(d.Recorded, `"r"`) || !strings.Contains(d.Replayed, `"q"`) {
					t.Errorf("difference = %+v, want queue r recorded and q replayed", d)
				}
				d.Recorded, d.Replayed = "", ""
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("result differs (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFieldsKeepTheirRecordedNames: a field that was renamed in Go keeps its JSON name, so that logs of earlier
// versions replay.
func TestFieldsKeepTheirRecordedNames(t *testing.T) {
	for _, tc := range []struct {
		field string
		ev    engine.Event
	}{
		{`"Held":true`, engine.ClusterQueueSet{ClusterQueue: engine.ClusterQueue{Stopped: true}}},
		{`"Held":true`, engine.LocalQueueSet{LocalQueue: engine.LocalQueue{Stopped: true}}},
		{`"BacksOff":"a"`, engine.WorkloadSet{Workload: engine.Workload{BackoffReason: "a"}}},
		{`"Told":"b"`, engine.WorkloadSet{Workload: engine.Workload{ReportedCode: "b"}}},
		{`"ToldOf":"c"`, engine.WorkloadSet{Workload: engine.Workload{ReportedMessage: "c"}}},
	} {
		var file bytes.Buffer
		log, err := Begin(&file, engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := log.Event(tc.ev); err != nil {
			t.Fatal(err)
		}
		if got := file.String(); !strings.Contains(got, tc.field) {
			t.Errorf("%T is recorded as %s, want the field %s", tc.ev, got, tc.field)
		}
	}
}

// TestEveryEventIsKnown: a log with an event of an unknown type would not replay.
func TestEveryEventIsKnown(t *testing.T) {
	found := 0
	entries, err := os.ReadDir("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), "../"+entry.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, declared := range file.Decls {
			method, ok := declared.(*ast.FuncDecl)
			if !ok || method.Recv == nil || method.Name.Name != "apply" || len(method.Type.Params.List) != 1 {
				continue
			}
			receiver, ok := method.Recv.List[0].Type.(*ast.Ident)
			if !ok || !receiver.IsExported() {
				continue
			}
			found++
			if _, known := kinds[receiver.Name]; !known {
				t.Errorf("the log does not know the event %s: add it to kinds", receiver.Name)
			}
		}
	}
	if found != len(kinds) {
		t.Errorf("found %d types of events, the log knows %d", found, len(kinds))
	}
}
