// Package takeover tests, on the embedded control plane with simulated nodes, that one of two operators goes on where
// the other was killed or stopped.
package takeover

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/bench/operator"
	"github.com/musterhq/muster/test/scenario/harness"
)

// `go test ./test/scenario/takeover -jobs=1000 -within=5s -v` says how long it took until another led, among as many as
// one likes, on a machine that does nothing else.
var (
	jobs   = flag.Int("jobs", 40, "how many jobs there are when the leader is killed")
	within = flag.Duration("within", 0, "how long after that another may take to lead and to admit a job; 0 for as long as it likes")
)

// quota is for how many of them, of one pod each.
func quota() int { return max(10, *jobs/20) }

func TestMain(m *testing.M) { testcluster.Main(m, testcluster.Options{SimNodes: 2}) }

// ledger is what a watch has seen of the jobs' pods and Workloads.
type ledger struct {
	sync.Mutex
	pods     map[string]map[string]bool // by what controls them, the UIDs of its pods
	holds    map[string]bool            // Workloads that hold quota
	admitted map[string]time.Time       // when they were first seen to
	most     int                        // so many held it at once
}

func follow(w *harness.World) *ledger {
	l := &ledger{pods: map[string]map[string]bool{}, holds: map[string]bool{}, admitted: map[string]time.Time{}}
	harness.Follow(w, &corev1.PodList{}, func(event watch.Event) { l.saw(event.Object.(*corev1.Pod)) }, l)
	harness.Follow(w, &kueue.WorkloadList{}, func(event watch.Event) {
		o := event.Object.(*kueue.Workload)
		finished := harness.Is(o, kueue.WorkloadFinished, metav1.ConditionTrue, kueue.WorkloadFinishedReasonSucceeded)
		if event.Type != watch.Deleted && o.Status.Admission != nil && !finished {
			l.holds[o.Name] = true
			if l.admitted[o.Name].IsZero() {
				l.admitted[o.Name] = time.Now()
			}
		} else {
			delete(l.holds, o.Name)
		}
		l.most = max(l.most, len(l.holds))
	}, l)
	return l
}

func (l *ledger) saw(pod *corev1.Pod) {
	job := metav1.GetControllerOf(pod).Name
	if l.pods[job] == nil {
		l.pods[job] = map[string]bool{}
	}
	l.pods[job][string(pod.UID)] = true
}

// firstAfter is how long after a time somebody was first admitted.
func (l *ledger) firstAfter(at time.Time) time.Duration {
	l.Lock()
	defer l.Unlock()
	first := time.Duration(-1)
	for _, admitted := range l.admitted {
		if took := admitted.Sub(at); took > 0 && (first < 0 || took < first) {
			first = took
		}
	}
	return first
}

// expect sees that each had so many pods in its life, nobody else had any, and no more Workloads held quota at once
// than there is for.
func (l *ledger) expect(w *harness.World, pods map[string]int, most int) {
	w.Helper()
	var left corev1.PodList // the watch may not have told of the last of them yet
	if err := w.Client.List(w.Context(), &left, client.InNamespace(w.Namespace)); err != nil {
		w.Fatal(err)
	}
	l.Lock()
	defer l.Unlock()
	for i := range left.Items {
		l.saw(&left.Items[i])
	}
	if l.most > most {
		w.Errorf("%d held quota at once, and there is some for %d", l.most, most)
	}
	had := map[string]int{}
	for job, uids := range l.pods {
		had[job] = len(uids)
	}
	if diff := gocmp.Diff(pods, had); diff != "" {
		w.Errorf("pods by job (-want +had):\n%s", diff)
	}
}

// simulate has pods run for a while on simulated nodes.
func simulate(pods *corev1.PodTemplateSpec, duration string) {
	pods.Spec.Tolerations = []corev1.Toleration{{Key: "muster.dev/simulated", Operator: corev1.TolerationOpExists}}
	pods.Annotations = map[string]string{"muster.dev/sim-duration": duration}
}

// TestAnotherLeadsWhereTheLeaderIsKilledAmongJobs: no job is lost, none has its pod twice, and never do more hold quota
// than there is. Then the second is stopped in order, and leaves its lease to whoever comes.
func TestAnotherLeadsWhereTheLeaderIsKilledAmongJobs(t *testing.T) {
	w := harness.New(t)
	w.Queue("q", kueue.ResourceFlavorSpec{},
		corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(int64(quota()), resource.DecimalSI)})
	seen := follow(w)
	first := operate(w)
	one := awaitLeader(w, "")
	second := operate(w)
	second.AwaitReady(t)

	for i := range *jobs {
		job := w.Job(fmt.Sprintf("job-%d", i), "q", 1)
		simulate(&job.Spec.Template, "300ms")
		w.Create(job)
	}
	untilDone(w, *jobs/4)
	killed := time.Now()
	first.End(syscall.SIGKILL)
	two := awaitLeader(w, one)
	led := time.Since(killed)
	untilDone(w, *jobs)
	admitted := seen.firstAfter(killed.Add(led))
	t.Logf("another led %s after the kill, and admitted the first job %s later", led.Round(10*time.Millisecond),
		admitted.Round(10*time.Millisecond))
	if *within > 0 && led+admitted > *within {
		t.Errorf("that is more than %s", *within)
	}

	want := map[string]int{}
	for i := range *jobs {
		want[fmt.Sprintf("job-%d", i)] = 1
	}
	seen.expect(w, want, quota())

	second.End(syscall.SIGTERM)
	if holder := leader(w); holder != "" {
		t.Errorf("%s has ended in order, and %s holds its lease still", two, holder)
	}
}

// TestAPausedLeaderWritesNothingWhenItGoesOn: by then another had led. That one is killed, so that whatever is written
// was written by the one that was paused.
func TestAPausedLeaderWritesNothingWhenItGoesOn(t *testing.T) {
	w := harness.New(t)
	w.Queue("q", kueue.ResourceFlavorSpec{}, corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")})
	paused := operate(w)
	one := awaitLeader(w, "")
	other := operate(w)
	other.AwaitReady(t)

	signal := func(signal syscall.Signal) {
		if err := syscall.Kill(int(paused.Process), signal); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = syscall.Kill(int(paused.Process), syscall.SIGCONT) }) // or it could not be ended
	signal(syscall.SIGSTOP)
	awaitLeader(w, one)
	other.End(syscall.SIGKILL)
	w.Create(w.Job("job", "q", 1))
	signal(syscall.SIGCONT)
	paused.AwaitEnd(t)

	var workloads kueue.WorkloadList
	if err := w.Client.List(w.Context(), &workloads, client.InNamespace(w.Namespace)); err != nil {
		t.Fatal(err)
	}
	if len(workloads.Items) > 0 {
		t.Errorf("it has made the Workload %s of a job though another has led since", workloads.Items[0].Name)
	}
}

func operate(w *harness.World) *operator.Operator {
	w.Helper()
	return operator.Start(w.T, present(), w.Cluster, "--leader-elect=true")
}

// present is the operator that is tested.
func present() string {
	return cmp.Or(os.Getenv(testcluster.OperatorVariable), "../../../bin/muster-operator")
}

// leader is who holds the lease; nobody does where it is empty.
func leader(w *harness.World) string {
	w.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "muster-system", Name: "muster.dev"}}
	w.Get(lease)
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

// awaitLeader waits until somebody else leads, and gives who.
func awaitLeader(w *harness.World, before string) (holder string) {
	w.Helper()
	harness.Until(w.Everywhere(), &coordinationv1.LeaseList{}, "another leads", func(list *coordinationv1.LeaseList) bool {
		for _, lease := range list.Items {
			if lease.Namespace == "muster-system" && lease.Name == "muster.dev" {
				holder = ptr.Deref(lease.Spec.HolderIdentity, "")
			}
		}
		return holder != "" && holder != before
	})
	return holder
}

func untilDone(w *harness.World, count int) {
	w.Helper()
	harness.Until(w, &batchv1.JobList{}, fmt.Sprintf("%d jobs are complete", count), func(list *batchv1.JobList) bool {
		done := 0
		for _, job := range list.Items {
			done += int(job.Status.Succeeded)
		}
		return done >= count
	})
}
