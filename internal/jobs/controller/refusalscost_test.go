package controller

import (
	"context"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/musterhq/muster/internal/jobs"
)

// cachedRefusal returns the event as the operator's cache keeps it.
func cachedRefusal(t *testing.T, event *corev1.Event) *corev1.Event {
	t.Helper()
	out, err := Refusals().Transform(event)
	if err != nil {
		t.Fatal(err)
	}
	return out.(*corev1.Event)
}

// TestTheCacheKeepsTheWordsOfTheAPIServer of an event, and no more than some kilobytes of what anyone may write there.
func TestTheCacheKeepsTheWordsOfTheAPIServer(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	inGo := func(message string) string {
		return `Error creating pods: [failed to create pod job-t-0, err: &errors.StatusError{ErrStatus:v1.Status{Status:"Failure", Message:"` + message + `", Code:403}}]`
	}
	for name, tc := range map[string]struct{ message, want string }{
		"of Kubernetes":         {"Error creating: exceeded quota", "exceeded quota"},
		"of another controller": {"no room", "no room"},
		"of Volcano":            {inGo(`pods \"job-t-0\" is forbidden`), `pods "job-t-0" is forbidden`},
		"of some length":        {strings.Repeat("y", 4096), strings.Repeat("y", 4096)},
		"of a megabyte":         {long, long[:4093] + "…"},
		"of whole characters":   {strings.Repeat("é", 1<<19), strings.Repeat("é", 2046) + "…"},
		"of Volcano, long":      {inGo(strings.Repeat("z", 8000)), strings.Repeat("z", 4093) + "…"},
		"that never says it": {strings.Repeat("&errors.StatusError{", 50_000),
			strings.Repeat("&errors.StatusError{", 50_000)[:4093] + "…"},
		"that ends far too late": {`&errors.StatusError{ Message:"` + long + `"`,
			(`&errors.StatusError{ Message:"` + long)[:4093] + "…"},
	} {
		event := &corev1.Event{Reason: jobs.FailedCreate, Message: tc.message}
		if got := cachedRefusal(t, event).Message; got != tc.want {
			t.Errorf("%s: %.60q of %d bytes, want %.60q of %d bytes", name, got, len(got), tc.want, len(tc.want))
		}
	}
}

// TestTheCacheKeepsNothingElseThatIsLong of an event.
func TestTheCacheKeepsNothingElseThatIsLong(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	about := corev1.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Namespace: "ns", Name: "job", UID: "u"}
	for name, change := range map[string]func(*corev1.Event){
		"annotations": func(e *corev1.Event) { e.Annotations = map[string]string{"a": long} },
		"labels":      func(e *corev1.Event) { e.Labels = map[string]string{"a": long} },
		"field":       func(e *corev1.Event) { e.InvolvedObject.FieldPath = long },
		"name":        func(e *corev1.Event) { e.InvolvedObject.Name = long },
		"UID":         func(e *corev1.Event) { e.InvolvedObject.UID = types.UID(long) },
		"source":      func(e *corev1.Event) { e.Source.Component, e.ReportingController = long, long },
		"related":     func(e *corev1.Event) { e.Related = &corev1.ObjectReference{Name: long} },
	} {
		event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e", Namespace: "ns"}, Reason: jobs.FailedCreate,
			Message: "Error creating: m", InvolvedObject: about}
		change(event)
		kept := cachedRefusal(t, event)
		if n := kept.Size(); n > 1000 || kept.Message != "m" || kept.Name != "e" || kept.Namespace != "ns" {
			t.Errorf("a long %s: %d bytes are kept", name, n)
		}
		if known := name != "name" && name != "UID"; known != (kept.InvolvedObject == about) {
			t.Errorf("a long %s: it is about %.60v", name, kept.InvolvedObject)
		}
	}
}

// TestAJobReadsFewEventsOfOthers: however many there are in its namespace, it reads those about its own objects, and of
// the others no more than it has objects.
func TestAJobReadsFewEventsOfOthers(t *testing.T) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "job", UID: "u"}}
	var children []client.Object
	for i := range 3 {
		children = append(children, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: types.UID(fmt.Sprint("child-", i))}})
	}
	children = append(children, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "pod"}})
	for _, others := range []int{0, 2, 500} {
		objects := []client.Object{refusalOfUID("own", "u"), refusalOfUID("of-a-child", "child-1")}
		for i := range others {
			objects = append(objects, refusalOfUID(fmt.Sprint("other-", i), "other"))
		}
		read := 0
		c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(objects...).WithIndex(&corev1.Event{},
			refusalIndex, refusalKeys).
			WithInterceptorFuncs(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList,
				opts ...client.ListOption) error {
				err := c.List(ctx, list, opts...)
				events := list.(*corev1.EventList)
				if limit := (&client.ListOptions{}).ApplyOptions(opts).Limit; limit > 0 { // the fake API server ignores it
					events.Items = events.Items[:min(len(events.Items), int(limit))]
				}
				read += len(events.Items)
				return err
			}}).Build()
		r := &reader[*batchv1.Job]{client: c}
		found, err := r.refusals(t.Context(), job, children)
		if err != nil {
			t.Fatal(err)
		}
		if len(found["u"]) != 1 || len(found["child-1"]) != 1 || found["u"][0].Message != "own" {
			t.Errorf("with %d events of others: %v, want those of the job and of its child", others, found)
		}
		if most := len(children) + 1 + 2; read > most {
			t.Errorf("with %d events of others: %d are read, want at most %d", others, read, most)
		}
	}
}

// refusalOfUID returns an event that says its own name about the object with the UID.
func refusalOfUID(name string, uid types.UID) *corev1.Event {
	return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Reason: jobs.FailedCreate,
		Message: name, InvolvedObject: corev1.ObjectReference{UID: uid}}
}
