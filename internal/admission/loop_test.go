package admission

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	"github.com/musterhq/muster/api/config/v1alpha1"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/engine"
)

// feed is the manager's cache: informers over a world that deliver the existing objects and then every change.
type feed struct {
	cache.Cache
	world    *admissiontest.World
	handlers map[string][]toolscache.ResourceEventHandler
}

// manager has the feed as its cache, and little else.
type manager struct {
	ctrl.Manager
	feed *feed
}

func (m manager) GetCache() cache.Cache { return m.feed }

func (m manager) GetClient() client.Client { return m.feed.world }

func (m manager) GetAPIReader() client.Reader { return m.feed.world }

func (f *feed) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return f.world.List(ctx, list, options...)
}

func (f *feed) GetInformer(_ context.Context, kind client.Object,
	_ ...cache.InformerGetOption) (cache.Informer, error) {
	return &informer{FakeInformer: controllertest.NewFakeInformer(controllertest.Synced), feed: f, kind: kind}, nil
}

type informer struct {
	*controllertest.FakeInformer
	feed *feed
	kind client.Object
}

func (i *informer) AddEventHandler(
	h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	gvk, err := apiutil.GVKForObject(i.kind, admissiontest.Scheme)
	if err != nil {
		return nil, err
	}
	w := i.feed.world
	w.Mu.Lock()
	defer w.Mu.Unlock()
	list, err := admissiontest.Scheme.New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err != nil {
		return nil, err
	}
	if err := w.List(context.Background(), list.(client.ObjectList)); err != nil {
		return nil, err
	}
	objects, err := meta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		h.OnAdd(o, true)
	}
	i.feed.handlers[gvk.Kind] = append(i.feed.handlers[gvk.Kind], h)
	return i.FakeInformer.AddEventHandler(h)
}

// deliver sends an object to every informer of its kind; after is nil for a deletion.
func (f *feed) deliver(before, after client.Object) {
	gvk, err := apiutil.GVKForObject(before, admissiontest.Scheme)
	if err != nil {
		f.world.T.Error(err)
	}
	for _, h := range f.handlers[gvk.Kind] {
		if after == nil {
			h.OnDelete(before)
		} else {
			h.OnUpdate(before, after.DeepCopyObject())
		}
	}
}

// running is all of admission over a world.
type running struct {
	*admissiontest.World
	feed *feed
}

// start starts admission over a world with the objects, until the end of the test.
func start(t *testing.T, objects ...client.Object) *running {
	t.Helper()
	r, stop := startRecorded(t, nil, objects...)
	t.Cleanup(stop)
	return r
}

// startRecorded starts a loop with a decision log. It also returns a function that stops the loop.
func startRecorded(t *testing.T, log *decisionLog, objects ...client.Object) (*running, func()) {
	t.Helper()
	return startOver(admissiontest.NewWorld(t, objects...), clock.RealClock{}, func(l *loop) { l.log = log })
}

// startOver starts a loop over an existing world, after change has modified the loop. It returns a function that stops
// it.
func startOver(w *admissiontest.World, now clock.WithTicker, change func(*loop)) (*running, func()) {
	r := &running{w, &feed{world: w, handlers: map[string][]toolscache.ResourceEventHandler{}}}
	w.Notify = func(before, after client.Object) { r.feed.deliver(before, after) }
	l := newLoop(manager{feed: r.feed}, config.Default(), now)
	change(l)
	ctx, stop := context.WithCancel(w.T.Context())
	var done sync.WaitGroup
	done.Go(func() {
		if err := l.Start(ctx); err != nil {
			w.T.Error(err)
		}
	})
	return r, func() { stop(); done.Wait() }
}

// waitFor waits until the Workload has the condition.
func (r *running) waitFor(name, condition string) {
	r.T.Helper()
	r.Await(name+" has the condition "+condition, func() bool {
		for _, line := range admissiontest.Conditions(r.Workload(name).Status.Conditions) {
			if line == condition {
				return true
			}
		}
		return false
	})
}

// updateStatus changes a Workload's status as its owner would.
func (r *running) updateStatus(name string, change func(w *kueue.Workload)) {
	r.T.Helper()
	w := r.Workload(name)
	r.EditStatus(w, func() { change(w) })
	r.Mu.Lock()
	defer r.Mu.Unlock()
	r.feed.deliver(w, w)
}

const isAdmitted = "Admitted=True Admitted: The workload is admitted"

func TestWorkloadsAreAdmittedAndQuotaIsReused(t *testing.T) {
	r := start(t, admissiontest.Namespace.DeepCopy(), admissiontest.NewFlavor("f"),
		admissiontest.NewClusterQueue("cq", "4"), admissiontest.NewLocalQueue("q", "cq"),
		admissiontest.NewWorkload("a", 3, quantities("cpu", "1")), admissiontest.NewWorkload("b", 2, quantities("cpu", "1")),
		admissiontest.NewWorkload("c", 5, quantities("cpu", "1")))
	r.waitFor("a", isAdmitted)
	r.waitFor("a", "QuotaReserved=True QuotaReserved: Quota reserved in ClusterQueue cq")
	r.waitFor("b", "QuotaReserved=False WaitingForQuota: couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor f, 1 more needed")
	r.waitFor("c", "QuotaReserved=False ExceedsMaxQuota: couldn't assign flavors to pod set main: insufficient quota for cpu in flavor f, "+
		"previously considered podsets requests (0) + current podset request (5) > maximum capacity (4)")
	r.Await("the status of the queue counts them", func() bool {
		var q kueue.ClusterQueue
		return r.Get(t.Context(), client.ObjectKey{Name: "cq"}, &q) == nil && q.Status.AdmittedWorkloads == 1 &&
			q.Status.PendingWorkloads == 2
	})
	r.updateStatus("a", func(w *kueue.Workload) {
		w.Status.Conditions = append(w.Status.Conditions,
			metav1.Condition{Type: kueue.WorkloadFinished, Status: metav1.ConditionTrue})
	})
	r.waitFor("b", isAdmitted)
}

// TestARestartKnowsWhatWasAdmittedBefore: quota that is held according to the API server is not given to others, and
// nothing is written again.
func TestARestartKnowsWhatWasAdmittedBefore(t *testing.T) {
	a, b := admissiontest.NewWorkload("a", 3, quantities("cpu", "1")),
		admissiontest.NewWorkload("b", 3, quantities("cpu", "1"))
	// although a would be first in order
	admissiontest.Admit(b, admissiontest.Given("cq", b.Spec.PodSets[0].Count), admissiontest.Now)
	r := start(t, admissiontest.Namespace.DeepCopy(), admissiontest.NewFlavor("f"),
		admissiontest.NewClusterQueue("cq", "4"), admissiontest.NewLocalQueue("q", "cq"), a, b)
	r.waitFor("a", "QuotaReserved=False WaitingForQuota: couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor f, 2 more needed")
	for _, write := range r.Written() {
		if write == "status Workload b" {
			t.Error("b was written again after the restart, want no write")
		}
	}
}

func TestADeletedWorkloadReleasesItsQuota(t *testing.T) {
	r := start(t, admissiontest.Namespace.DeepCopy(), admissiontest.NewFlavor("f"),
		admissiontest.NewClusterQueue("cq", "4"), admissiontest.NewLocalQueue("q", "cq"), admissiontest.NewWorkload("a", 4,
			quantities("cpu", "1")), admissiontest.NewWorkload("b", 4, quantities("cpu", "1")))
	r.waitFor("a", isAdmitted)
	a := r.Workload("a")
	r.Remove(a)
	r.feed.deliver(a, nil)
	r.waitFor("b", isAdmitted)
}

func TestAMissedDeletionIsHandled(t *testing.T) {
	r := start(t, admissiontest.Namespace.DeepCopy(), admissiontest.NewFlavor("f"),
		admissiontest.NewClusterQueue("cq", "4"), admissiontest.NewLocalQueue("q", "cq"), admissiontest.NewWorkload("a", 4,
			quantities("cpu", "1")), admissiontest.NewWorkload("b", 4, quantities("cpu", "1")))
	r.waitFor("a", isAdmitted)
	a := r.Workload("a")
	r.Remove(a)
	for _, h := range r.feed.handlers["Workload"] {
		h.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "ns/a", Obj: a})
	}
	r.waitFor("b", isAdmitted)
}

func TestTheMailboxKeepsTheOrderAndWakesOnce(t *testing.T) {
	box := newMailbox()
	var want []engine.Event
	for i := range 3 {
		ev := engine.FlavorDeleted{Name: fmt.Sprint(i)}
		want = append(want, ev)
		box.put(message{event: ev})
	}
	<-box.wake
	var got []engine.Event
	for _, n := range box.take() {
		got = append(got, n.engineEvents(newSceneTranslator(), admissiontest.Now)...)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	select {
	case <-box.wake:
		t.Error("the mailbox wakes again for messages that were taken")
	default:
	}
	if got := box.take(); got != nil {
		t.Errorf("messages taken twice: %v", got)
	}
}

// wallClock is a clock whose timers fire when the test says so, whatever its time, since it may be set back.
type wallClock struct {
	*clocktesting.FakeClock
	timers chan handTimer
}

type handTimer struct {
	clock.Timer
	fires chan time.Time
}

func (w wallClock) NewTimer(time.Duration) clock.Timer {
	timer := handTimer{fires: make(chan time.Time, 1)}
	w.timers <- timer
	return timer
}

func (h handTimer) C() <-chan time.Time { return h.fires }

func (h handTimer) Stop() bool { return true }

// TestATimerThatFiresTooEarlyIsSetAgain: a timer fires too early if the clock was set back after it was set.
func TestATimerThatFiresTooEarlyIsSetAgain(t *testing.T) {
	w := admissiontest.NewWorld(t, admissiontest.Namespace.DeepCopy(), admissiontest.NewFlavor("f"),
		admissiontest.NewClusterQueue("cq", "4"), admissiontest.NewLocalQueue("q", "cq"),
		admissiontest.NewWorkload("a", 3, quantities("cpu", "1")))
	refused := admissiontest.Once(apierrors.NewForbidden(schema.GroupResource{Resource: "workloads"}, "a",
		errors.New("a policy says no")))
	w.Before = func(write string) error {
		if write != "status Workload a" {
			return nil
		}
		return refused(write)
	}
	hand := wallClock{clocktesting.NewFakeClock(admissiontest.Now), make(chan handTimer, 10)}
	r, stop := startOver(w, hand, func(l *loop) { l.auditor.Every = 0 })
	defer stop()
	next := func(when string) handTimer {
		t.Helper()
		select {
		case timer := <-hand.timers:
			return timer
		case <-time.After(admissiontest.Never):
			t.Fatalf("timed out waiting until an alarm is set %s", when)
			panic("unreachable")
		}
	}
	first := next("after the refusal")
	hand.SetTime(admissiontest.Now.Add(-time.Minute))
	first.fires <- admissiontest.Now
	second := next("though it rang a minute early")
	hand.SetTime(admissiontest.Now.Add(time.Minute))
	second.fires <- admissiontest.Now
	r.waitFor("a", isAdmitted)
}

// TestTheLoopWakesWhenTheEngineIsDue: usage is sampled by a single timer although no event arrives.
func TestTheLoopWakesWhenTheEngineIsDue(t *testing.T) {
	cfg := config.Default()
	cfg.AdmissionFairSharing = &v1alpha1.AdmissionFairSharing{UsageHalfLifeTime: metav1.Duration{Duration: time.Hour},
		UsageSamplingInterval: &metav1.Duration{Duration: 5 * time.Minute}}
	queue := admissiontest.NewClusterQueue("cq", "4")
	queue.Spec.AdmissionScope = &kueue.AdmissionScope{AdmissionMode: kueue.UsageBasedAdmissionFairSharing}
	w := admissiontest.NewWorld(t, queue)
	l := newLoop(manager{feed: &feed{world: w}}, cfg, clock.RealClock{})
	clock := clocktesting.NewFakeClock(admissiontest.Now)
	l.clock = clock
	l.setAlarm()
	if l.alarm != nil {
		t.Fatal("an alarm is set although nothing is due")
	}
	for _, o := range []client.Object{admissiontest.Namespace.DeepCopy(), admissiontest.NewFlavor("f"), queue,
		admissiontest.NewLocalQueue("q", "cq"), admissiontest.NewWorkload("a", 2, admissiontest.Quantities("cpu", "1"))} {
		l.mailbox.put(message{changed: o})
	}
	l.turn()
	l.setAlarm()
	for range 3 {
		clock.Step(5*time.Minute - time.Second)
		select {
		case <-l.alarm:
			t.Fatal("the alarm fires too early")
		default:
		}
		clock.Step(time.Second)
		<-l.alarm
		l.turn()
		l.setAlarm()
		if clock.Waiters() != 1 {
			t.Fatalf("%d timers are set, want 1", clock.Waiters())
		}
	}
	usage, _ := l.engine.LocalQueueUsage(engine.Key{Namespace: "ns", Name: "q"})
	if usage.Consumption == nil || !usage.Consumption.At.Equal(admissiontest.Now.Add(15*time.Minute)) ||
		usage.Consumption.Resources["cpu"] == 0 {
		t.Errorf("consumption = %+v, want one sampled after 15 minutes", usage.Consumption)
	}
}

// TestACheckListedTwiceCountsOnce: the API permits listing a check twice, for different flavors or by mistake.
func TestACheckListedTwiceCountsOnce(t *testing.T) {
	strategy := &kueue.AdmissionChecksStrategy{AdmissionChecks: []kueue.AdmissionCheckStrategyRule{
		{Name: "check", OnFlavors: []kueue.ResourceFlavorReference{"f", "g"}},
		{Name: "check", OnFlavors: []kueue.ResourceFlavorReference{"f"}}}}
	for name, spec := range map[string]kueue.ClusterQueueSpec{
		"for all flavors": {AdmissionChecks: []kueue.AdmissionCheckReference{"check", "check"}},
		"for some":        {AdmissionChecksStrategy: strategy},
	} {
		t.Run(name, func(t *testing.T) {
			q, check := admissiontest.NewClusterQueue("cq", "8"),
				&kueue.AdmissionCheck{ObjectMeta: metav1.ObjectMeta{Name: "check"}}
			q.Spec.AdmissionChecks, q.Spec.AdmissionChecksStrategy = spec.AdmissionChecks, spec.AdmissionChecksStrategy
			check.Status.Conditions = []metav1.Condition{{Type: kueue.AdmissionCheckActive, Status: metav1.ConditionTrue}}
			objects := []client.Object{admissiontest.Namespace.DeepCopy(), admissiontest.NewFlavor("f"), check, q,
				admissiontest.NewLocalQueue("q", "cq"), admissiontest.NewWorkload("a", 2, admissiontest.Quantities("cpu", "1"))}
			w := admissiontest.NewWorld(t, objects...)
			l := newLoop(manager{feed: &feed{world: w}}, config.Default(), clock.RealClock{})
			for _, o := range objects {
				l.mailbox.put(message{changed: o})
			}
			l.turn()
			l.decisions.Write(t.Context(), engine.Key{Namespace: "ns", Name: "a"})
			a := w.Workload("a")
			if a.Status.Admission == nil || len(a.Status.AdmissionChecks) != 1 {
				t.Errorf("admission = %+v and checks = %+v, want one check", a.Status.Admission, a.Status.AdmissionChecks)
			}
		})
	}
}
