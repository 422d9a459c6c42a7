//go:build bench

// Package traces plays logs of real clusters on a virtual clock, with the engine that decides in production, and
// measures how long jobs wait. The logs are no part of this project: without them, the test is skipped.
package traces

import (
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/admission/whatif"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/sim"
	"github.com/musterhq/muster/internal/sim/simtest"
)

var folder = flag.String("traces", "../../../../shared/traces", "folder of the logs")

// log is a log of jobs, and the cluster that it is from.
type log struct {
	name, file string
	processors int64
}

var logs = []log{
	{"KTH-SP2", "KTH-SP2-1996-2.1-cln.swf.gz", 100},
	{"HPC2N", "HPC2N-sample.swf.gz", 240},
}

// setting is a policy of the only queue, and what it knows of jobs.
type setting struct {
	name string
	// queue makes the ClusterQueue what it is.
	queue func(*kueue.ClusterQueue)
	// limits says whether it knows the time that users requested, beside what it learns.
	limits bool
	// like is the policy with which the plain simulation has the same waits; nil if there is none.
	like *simtest.Policy
}

var (
	strict, firstFit, easy = simtest.Strict, simtest.FirstFit, simtest.EASY
	settings               = []setting{
		{"strict", strictFIFO, true, &strict},
		{"firstfit", func(*kueue.ClusterQueue) {}, true, &firstFit},
		{"default limits", followsNodes, true, &easy},
		{"default learned", followsNodes, false, nil},
		{"besteffort limits", backfills, true, &easy},
		{"besteffort learned", backfills, false, nil},
	}
)

func strictFIFO(q *kueue.ClusterQueue) { q.Spec.QueueingStrategy = kueue.StrictFIFO }

// followsNodes makes the ClusterQueue one like that called default.
func followsNodes(q *kueue.ClusterQueue) {
	q.Labels = map[string]string{muster.FollowsNodesLabel: "true"}
}

// backfills makes a ClusterQueue with the strategy BestEffortFIFO plan starts.
func backfills(q *kueue.ClusterQueue) {
	q.Annotations = map[string]string{muster.BackfillAnnotation: "true"}
}

// cluster returns the cluster of the log with its only queue, as the operator translates its objects.
func (s *setting) cluster(processors int64) sim.Cluster {
	q := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	q.Spec.NamespaceSelector = &metav1.LabelSelector{}
	q.Spec.ResourceGroups = []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{sim.GPU},
		Flavors: []kueue.FlavorQuotas{{Name: "default", Resources: []kueue.ResourceQuota{
			{Name: sim.GPU, NominalQuota: *resource.NewQuantity(processors, resource.DecimalSI)}}}}}}
	s.queue(q)
	options := whatif.Options(config.Default())
	options.CheckWaitingEvery = 0
	return sim.Cluster{Options: &options, Objects: whatif.Events(config.Default(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: sim.Namespace}},
		&kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, q,
		&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: sim.Namespace},
			Spec: kueue.LocalQueueSpec{ClusterQueue: "default"}})}
}

// most are the largest figures, in seconds, that a row may have. Zero bounds nothing.
type most struct{ mean, longest, slowdown, large float64 }

// reach has the figures that rows must reach.
var reach = map[string]most{
	"KTH-SP2 default limits":     {6050, 295_000, 69.5, 68_000},
	"KTH-SP2 besteffort limits":  {6050, 295_000, 69.5, 68_000},
	"KTH-SP2 default learned":    {7650, 500_000, 84, 107_000},
	"KTH-SP2 besteffort learned": {7650, 500_000, 84, 107_000},
	"HPC2N default limits":       {3250, 100_000, 14.4, 0},
}

// TestTraces prints a row for each log and setting.
func TestTraces(t *testing.T) {
	for _, l := range logs {
		t.Run(l.name, func(t *testing.T) {
			jobs := read(t, l)
			for _, s := range settings {
				play(t, l, s, jobs)
			}
		})
	}
}

// read returns the jobs of a log.
func read(t *testing.T, l log) []sim.Job {
	t.Helper()
	file, err := os.Open(filepath.Join(*folder, l.file))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("%s is not in %s: give the folder that has it, make bench-traces TRACES=FOLDER", l.file, *folder)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	text, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := sim.ReadSWF(text)
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}

// play plays the log under a setting, prints its row, and checks it.
func play(t *testing.T, l log, s setting, jobs []sim.Job) {
	if !s.limits {
		jobs = slices.Clone(jobs)
		for i := range jobs {
			jobs[i].Time.Limit = 0
		}
	}
	began, name := time.Now(), l.name+" "+s.name
	result := s.cluster(l.processors).Run(jobs)
	all := result.Figures(jobs, sim.GPU, func(*sim.Job) bool { return true })
	large := result.Figures(jobs, sim.GPU, func(j *sim.Job) bool { return j.Max > 64 })
	fmt.Printf("%s mean=%.0f p99=%.0f max=%.0f bsld=%.1f large=%.0f\n", name, all.Mean.Seconds(), all.P99.Seconds(),
		all.Longest.Seconds(), all.Slowdown, large.Mean.Seconds())
	t.Logf("%s: %d jobs, %d promises kept, %d delayed, simulated in %s", name, all.Jobs, all.Kept, all.Delayed,
		time.Since(began).Round(100*time.Millisecond))
	reach[name].check(t, name, all, large)
	if s.like != nil {
		sameWaits(t, name, simtest.Waits(jobs, l.processors, *s.like), result.Waited)
	}
}

// check fails the test where a figure of the row is too large, a job did not end, or a promise was delayed.
func (m most) check(t *testing.T, name string, all, large sim.Figures) {
	t.Helper()
	for _, f := range []struct {
		what      string
		got, most float64
	}{
		{"mean wait", all.Mean.Seconds(), m.mean},
		{"longest wait", all.Longest.Seconds(), m.longest},
		{"bounded slowdown", all.Slowdown, m.slowdown},
		{"mean wait of jobs of more than 64 processors", large.Mean.Seconds(), m.large},
	} {
		if f.most > 0 && f.got > f.most {
			t.Errorf("%s: %s is %.1f, want at most %.1f", name, f.what, f.got, f.most)
		}
	}
	if all.Delayed > 0 || all.Unstarted > 0 || all.Unended > 0 {
		t.Errorf("%s: %d promises delayed, %d jobs never started, %d never ended; want none", name, all.Delayed,
			all.Unstarted, all.Unended)
	}
}

// sameWaits fails the test unless each job waits as long as in the plain simulation.
func sameWaits(t *testing.T, name string, plain, engine []time.Duration) {
	t.Helper()
	differ := 0
	for i := range plain {
		if plain[i] != engine[i] {
			if differ++; differ == 1 {
				t.Errorf("%s: job %d waits %s, and %s in the plain simulation", name, i, engine[i], plain[i])
			}
		}
	}
	if differ > 0 {
		t.Errorf("%s: %d of %d jobs wait differently from the plain simulation", name, differ, len(plain))
	}
}
