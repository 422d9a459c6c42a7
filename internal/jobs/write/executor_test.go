package write

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// fakeRecorder records events as "Type Reason: note".
type fakeRecorder struct {
	mu     sync.Mutex
	events []string
}

func (f *fakeRecorder) Eventf(_, _ runtime.Object, kind, reason, action, note string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = append(f.events, kind+" "+reason+": "+fmt.Sprintf(note, args...))
}

// executorTest is an executor with a fake API server that records each write as "verb name", and fails those in fail.
type executorTest struct {
	executor *Executor
	client   client.Client
	events   *fakeRecorder
	job      *batchv1.Job

	mu     sync.Mutex
	writes []string
	fail   map[string]error
	delete *client.DeleteOptions // of the last deletion
}

// newExecutorTest returns an executorTest whose API server holds the job ns/j and the objects.
func newExecutorTest(t *testing.T, objects ...client.Object) *executorTest {
	t.Helper()
	b := &executorTest{events: &fakeRecorder{}, fail: map[string]error{}}
	note := func(verb, name string) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.writes = append(b.writes, verb+" "+name)
		return b.fail[verb+" "+name]
	}
	job := aJob()
	b.client = fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(append(objects, job)...).
		WithStatusSubresource(job).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				return errorOr(note("create", o.GetName()), func() error { return c.Create(ctx, o, opts...) })
			},
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch,
				opts ...client.PatchOption) error {
				return errorOr(note("change", o.GetName()), func() error { return asServerError(c.Patch(ctx, o, p, opts...)) })
			},
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
				b.delete = (&client.DeleteOptions{}).ApplyOptions(opts)
				return errorOr(note("delete", o.GetName()), func() error { return c.Delete(ctx, o, opts...) })
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
				opts ...client.SubResourcePatchOption) error {
				return errorOr(note(sub, o.GetName()), func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
			},
		}).Build()
	b.executor = NewExecutor(b.client, b.events)
	b.job = &batchv1.Job{}
	if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(job), b.job); err != nil {
		t.Fatal(err)
	}
	return b
}

// asServerError returns the error as the API server returns it, which answers a failed test of a JSON patch like an
// invalid object.
func asServerError(err error) error {
	if err != nil && strings.HasSuffix(err.Error(), "test failed") {
		return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "",
			err.Error(), 0, false)
	}
	return err
}

// errorOr returns the error or, if it is nil, what write returns.
func errorOr(err error, write func() error) error {
	if err != nil {
		return err
	}
	return write()
}

func (e *executorTest) run(t *testing.T, p Batch) error {
	t.Helper()
	return e.executor.Run(t.Context(), e.job, p)
}

// withChangedStatus returns the job with another status than it has.
func (e *executorTest) withChangedStatus() *batchv1.Job {
	out := e.job.DeepCopy()
	out.Status.Succeeded++
	return out
}

// child returns a ConfigMap that the job controls.
func child(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns",
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(aJob(),
			batchv1.SchemeGroupVersion.WithKind("Job"))}}}
}

// orphan returns a ConfigMap without a controller.
func orphan(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: "orphan-uid"}}
}

var (
	configMaps  = schema.GroupResource{Resource: "configmaps"}
	conflict    = apierrors.NewConflict(configMaps, "c", errors.New("changed since"))
	unavailable = apierrors.NewServiceUnavailable("overloaded")
	forbidden   = apierrors.NewForbidden(configMaps, "c", errors.New("exceeded quota: 100% of it"))
)

// TestCreateIsIdempotent: an object that the job controls already is no error.
func TestCreateIsIdempotent(t *testing.T) {
	b := newExecutorTest(t)
	for range 2 {
		if err := b.run(t, Batch{Writes: []Write{Create(child("c"))}}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCreateRefusesObjectsOfOtherOwners(t *testing.T) {
	b := newExecutorTest(t, orphan("c"))
	err := b.run(t, Batch{Writes: []Write{Create(child("c")).OrWarn("CreationFailed")}})
	const message = "the name c is taken by an object that belongs to another owner: delete that ConfigMap, or give the job another name"
	if err == nil || err.Error() != "create ConfigMap ns/c: "+message {
		t.Errorf("error %v, want %q", err, message)
	}
	if diff := cmp.Diff([]string{"Warning CreationFailed: " + message}, b.events.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestCreateWithoutControllerAcceptsAnExistingObject(t *testing.T) {
	b := newExecutorTest(t, orphan("c"))
	if err := b.run(t, Batch{Writes: []Write{Create(orphan("c"))}}); err != nil {
		t.Error(err)
	}
}

func TestDelete(t *testing.T) {
	for name, tc := range map[string]struct {
		objects []client.Object
		fails   error
		want    string
	}{
		"an existing object":                        {objects: []client.Object{orphan("c")}},
		"an object that is gone":                    {},
		"a later object of the name, which is kept": {fails: conflict},
		"an API server that is unavailable":         {fails: unavailable, want: "delete ConfigMap ns/c: overloaded"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newExecutorTest(t, tc.objects...)
			b.fail["delete c"] = tc.fails
			err := b.run(t, Batch{Writes: []Write{DeleteInForeground(orphan("c"))}})
			if got := errorText(err); got != tc.want {
				t.Errorf("error %q, want %q", got, tc.want)
			}
			if b.delete.Preconditions == nil || *b.delete.Preconditions.UID != "orphan-uid" ||
				*b.delete.PropagationPolicy != metav1.DeletePropagationForeground {
				t.Errorf("delete options = %+v, want foreground deletion of the UID orphan-uid", b.delete)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestChangeFailsIfTheObjectHasChanged(t *testing.T) {
	b := newExecutorTest(t, orphan("c"))
	var seen corev1.ConfigMap
	if err := b.client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "c"}, &seen); err != nil {
		t.Fatal(err)
	}
	change := func(to string) error {
		desired := seen.DeepCopy()
		desired.Data = map[string]string{"key": to}
		return b.run(t, Batch{Writes: []Write{Change(&seen, desired)}})
	}
	if err := change("first"); err != nil {
		t.Fatal(err)
	}
	err := change("second")
	if !apierrors.IsConflict(err) || !IsConflict(err) || !strings.HasPrefix(err.Error(), "change ConfigMap ns/c: ") {
		t.Errorf("error %v, want a conflict", err)
	}
}

// TestDespiteStatus checks that such a change succeeds though another client has changed the object's status or labels
// meanwhile, and fails with a conflict if it has changed the spec or added the first annotation.
func TestDespiteStatus(t *testing.T) {
	for name, tc := range map[string]struct {
		meanwhile func(*batchv1.Job)
		status    bool
		conflict  bool
		writes    []string
	}{
		"no change": {meanwhile: func(*batchv1.Job) {}, writes: []string{"change j"}},
		"status": {status: true, meanwhile: func(j *batchv1.Job) { j.Status.Active = 1 },
			writes: []string{"change j"}},
		"label": {meanwhile: func(j *batchv1.Job) { j.Labels = map[string]string{"theirs": "yes"} },
			writes: []string{"change j"}},
		"spec": {meanwhile: func(j *batchv1.Job) { j.Generation, j.Spec.Parallelism = 2, ptr.To[int32](9) },
			conflict: true, writes: []string{"change j", "change j"}},
		"first annotation": {meanwhile: func(j *batchv1.Job) { j.Annotations = map[string]string{"theirs": "yes"} },
			conflict: true, writes: []string{"change j", "change j"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newExecutorTest(t)
			seen := b.job.DeepCopy()
			seen.Generation, seen.Spec.Suspend = 1, ptr.To(true)
			if err := b.client.Update(t.Context(), seen); err != nil {
				t.Fatal(err)
			}
			desired := seen.DeepCopy()
			desired.Spec.Suspend = nil
			desired.Annotations = map[string]string{"muster.dev/ours": "yes"}
			desired.Spec.Template.Spec.NodeSelector = map[string]string{"pool": "f"}
			changed := seen.DeepCopy()
			tc.meanwhile(changed)
			update := func() error { return b.client.Update(t.Context(), changed) }
			if tc.status {
				update = func() error { return b.client.Status().Update(t.Context(), changed) }
			}
			if err := update(); err != nil {
				t.Fatal(err)
			}
			err := b.run(t, Batch{Writes: []Write{Change(seen, desired).DespiteStatus()}})
			if IsConflict(err) != tc.conflict || err != nil && !tc.conflict {
				t.Errorf("error %v, want a conflict: %v", err, tc.conflict)
			}
			if diff := cmp.Diff(tc.writes, b.writes); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			var now batchv1.Job
			if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(b.job), &now); err != nil {
				t.Fatal(err)
			}
			ours := now.Annotations["muster.dev/ours"] == "yes" && now.Spec.Suspend == nil &&
				now.Spec.Template.Spec.NodeSelector["pool"] == "f"
			theirs := now.Status.Active == changed.Status.Active && now.Labels["theirs"] == changed.Labels["theirs"] &&
				now.Annotations["theirs"] == changed.Annotations["theirs"]
			if ours == tc.conflict || !theirs {
				t.Errorf("our change is there: %v, want %v; the other client's is: %v, want true: %+v", ours,
					!tc.conflict, theirs, now)
			}
		})
	}
}

func TestStatusIsWrittenAfterTheWritesOnlyIfItDiffers(t *testing.T) {
	b := newExecutorTest(t)
	if err := b.run(t, Batch{Writes: []Write{Create(child("c"))}, Status: b.job.DeepCopy()}); err != nil {
		t.Fatal(err)
	}
	if err := b.run(t, Batch{Writes: []Write{Create(child("d"))}, Status: b.withChangedStatus()}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"create c", "create d", "status j"}, b.writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

func TestRun(t *testing.T) {
	event := []string{"Normal Done: all of it"}
	for name, tc := range map[string]struct {
		statusFirst bool
		fails       map[string]error
		writes      []string
		events      []string
		err         string
	}{
		"writes, status, events": {
			writes: []string{"create a", "create b", "status j"}, events: event},
		"status first, if the writes rely on it": {
			statusFirst: true, writes: []string{"status j", "create a", "create b"}, events: event},
		"a failed write prevents neither the others nor the status, which reports what was observed": {
			fails:  map[string]error{"create a": unavailable},
			writes: []string{"create a", "create b", "status j"}, events: event, err: "create ConfigMap ns/a: overloaded"},
		"no writes after a status first that failed": {
			statusFirst: true, fails: map[string]error{"status j": unavailable},
			writes: []string{"status j"}, err: "change status of Job ns/j: overloaded"},
		"no events of a status that failed": {
			fails:  map[string]error{"status j": unavailable},
			writes: []string{"create a", "create b", "status j"}, err: "change status of Job ns/j: overloaded"},
		"events of a status first though a write fails, since no later plan has them": {
			statusFirst: true, fails: map[string]error{"create b": unavailable},
			writes: []string{"status j", "create a", "create b"}, events: event, err: "create ConfigMap ns/b: overloaded"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newExecutorTest(t)
			b.fail = tc.fails
			err := b.run(t, Batch{
				Writes: []Write{Create(child("a")), Create(child("b"))}, Status: b.withChangedStatus(), StatusFirst: tc.statusFirst,
				Events: []Event{Normal("Done", "all of it")},
			})
			if got := errorText(err); got != tc.err {
				t.Errorf("error %q, want %q", got, tc.err)
			}
			sortCreates(b.writes)
			if diff := cmp.Diff(tc.writes, b.writes); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.events, b.events.events); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWorkloadIsWrittenThoughFirstWritesFail, so that the quota that it releases can be used. Other writes are skipped.
func TestWorkloadIsWrittenThoughFirstWritesFail(t *testing.T) {
	b := newExecutorTest(t)
	if err := kueue.AddToScheme(b.client.Scheme()); err != nil {
		t.Fatal(err)
	}
	b.fail = map[string]error{"create a": unavailable}
	err := b.run(t, Batch{First: []Write{Create(child("a"))}, Writes: []Write{Create(child("b")),
		Create(&kueue.Workload{ObjectMeta: metav1.ObjectMeta{Name: "w", Namespace: "ns"}})}})
	if want := "create ConfigMap ns/a: overloaded"; errorText(err) != want {
		t.Errorf("error %q, want %q", errorText(err), want)
	}
	if diff := cmp.Diff([]string{"create a", "create w"}, b.writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// TestWritesOfAPlanAreConcurrent: each create returns only once all have started, so that sequential writes would never
// end.
func TestWritesOfAPlanAreConcurrent(t *testing.T) {
	var starting sync.WaitGroup
	starting.Add(concurrentWrites)
	all := make(chan struct{})
	go func() { starting.Wait(); close(all) }()
	job := aJob()
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(job).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			starting.Done()
			select {
			case <-all:
				return c.Create(ctx, o, opts...)
			case <-ctx.Done():
				return ctx.Err()
			}
		},
	}).Build()
	var plan Batch
	for i := range concurrentWrites {
		plan.Writes = append(plan.Writes, Create(child(fmt.Sprint("c", i))))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := NewExecutor(c, &fakeRecorder{}).Run(ctx, job, plan); err != nil {
		t.Fatal(err)
	}
}

// sortCreates sorts adjacent creates by name, since a plan's writes are concurrent.
func sortCreates(writes []string) {
	slices.SortStableFunc(writes, func(a, b string) int {
		if strings.HasPrefix(a, "create") && strings.HasPrefix(b, "create") {
			return strings.Compare(a, b)
		}
		return 0
	})
}

// TestErrorOfManyWritesIsShort: it is logged at each retry, and the API server may refuse thousands of pods for one
// reason. What failed is still known.
func TestErrorOfManyWritesIsShort(t *testing.T) {
	b := newExecutorTest(t)
	var plan Batch
	for i := range 1000 {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprintf("p%03d", i)}}
		b.fail["create "+pod.Name] = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, pod.Name,
			errors.New("exceeded quota"))
		plan.Writes = append(plan.Writes, Create(pod))
	}
	err := b.run(t, plan)
	if !IsRefused(err) || len(failed(err)) != 1000 {
		t.Errorf("refused: %v, %d writes failed; want 1000 that were refused", IsRefused(err), len(failed(err)))
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 4 || !strings.Contains(lines[0], "exceeded quota") || lines[3] != "and 997 more" {
		t.Errorf("error = %s, want three errors and how many more there are", err)
	}
}

func TestWhatAnotherWriterDidFirst(t *testing.T) {
	failure := func(verb Verb, err error) error {
		return &Failure{Write{verb: verb, object: &batchv1.Job{}}, "Job", err}
	}
	change, create := failure(VerbChange, conflict), failure(VerbCreate, conflict)
	gone, failed := failure(VerbChange, apierrors.NewNotFound(batchv1.Resource("jobs"), "a")),
		failure(VerbChange, unavailable)
	for name, tc := range map[string]struct {
		err                 error
		conflict, overtaken bool
	}{
		"a change":               {change, true, true},
		"a change of the status": {failure(VerbChangeStatus, conflict), true, true},
		"several changes":        {errors.Join(change, change), true, true},
		"a change, and one of an object that is gone": {errors.Join(gone,
			change), false, true},
		"a change, and another error that needs a retry": {errors.Join(change,
			failed), false, false},
		"an object that is gone, and another error that needs a retry": {writeErrors{gone,
			failed}, false, false},
		"a create that lost a race for a ResourceQuota, which no watch event follows": {create, false, false},
		"any other error": {unavailable, false, false},
		"none":            {},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IsConflict(tc.err); got != tc.conflict {
				t.Errorf("isConflict = %v, want %v", got, tc.conflict)
			}
			if got := IsOvertaken(tc.err); got != tc.overtaken {
				t.Errorf("isOvertaken = %v, want %v", got, tc.overtaken)
			}
		})
	}
}

// aJob returns the job ns/j.
func aJob() *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j", Namespace: "ns", UID: "job-uid"}}
}
