package listwatch

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/testcluster"
)

var vcJobs = volcano.GroupVersion.WithKind("Job")

func newVCJob() (runtime.Object, error) { return &volcano.Job{}, nil }

var vcJobLists = jsonLists{kind: vcJobs, newObject: newVCJob, skip: skipAll}

const (
	readableJob = `{"apiVersion":"batch.volcano.sh/v1alpha1","kind":"Job","metadata":{"name":"good"},"spec":{"queue":"q"}}`
	// unreadableJob has a timeout that is not a duration, deep within lists and followed by other fields.
	unreadableJob = `{"apiVersion":"batch.volcano.sh/v1alpha1","kind":"Job","metadata":{"name":"bad","namespace":"n","uid":"u","resourceVersion":"5"},` +
		`"spec":{"tasks":[{"name":"t","policies":[{"event":"*","timeout":"5 minutes","action":"AbortJob"},{"event":"*"}],"replicas":1}],"queue":"q"},"status":{"state":{"phase":"Running"}}}`
)

// TestAListContinuesAfterAnUnreadableObject: the list continues whichever part of the object is unreadable, and
// wherever it is in the list.
func TestAListContinuesAfterAnUnreadableObject(t *testing.T) {
	bads := map[string]string{
		"a timeout deep in lists":  unreadableJob,
		"a text for a number":      `{"metadata":{"name":"bad"},"spec":{"minAvailable":"two","queue":"q"},"status":{}}`,
		"an object for a list":     `{"metadata":{"name":"bad"},"spec":{"tasks":{"a":[1,{"b":2}]},"queue":"q"}}`,
		"a list for an object":     `{"metadata":{"name":"bad"},"spec":[{"a":1},[2]]}`,
		"a number that is too big": `{"metadata":{"name":"bad"},"spec":{"maxRetry":99999999999}}`,
	}
	for what, bad := range bads {
		for _, items := range [][]string{{bad}, {bad, readableJob}, {readableJob, bad}, {bad, bad, readableJob},
			{readableJob, bad, readableJob}} {
			sent := `{"items":[` + strings.Join(items, ",") + `],"metadata":{"resourceVersion":"7"}}`
			list, got, err := all(vcJobLists, strings.NewReader(sent))
			if err != nil || list.ResourceVersion != "7" {
				t.Fatalf("%s: got version %q, error %v, from %s", what, list.ResourceVersion, err, sent)
			}
			want := len(slices.DeleteFunc(items, func(item string) bool { return item == bad }))
			if len(got) != want {
				t.Fatalf("%s: %d objects, want %d, from %s", what, len(got), want, sent)
			}
			for _, object := range got {
				if job := object.(*volcano.Job); job.Name != "good" || job.Spec.Queue != "q" {
					t.Fatalf("%s: read %+v from %s", what, job, sent)
				}
			}
		}
	}
}

// TestAListTruncatedInAnUnreadableObjectIsAnError: only well-formed objects are skipped.
func TestAListTruncatedInAnUnreadableObjectIsAnError(t *testing.T) {
	sent := `{"items":[` + unreadableJob + `],"metadata":{"resourceVersion":"7"}}`
	for at := range len(sent) {
		if _, _, err := all(vcJobLists, strings.NewReader(sent[:at])); err == nil {
			t.Fatalf("accepted as a list: %s", sent[:at])
		}
	}
}

// TestAnUnreadableObjectOfAStrictGroupIsAnError: if a Workload with quota were skipped, its quota would be given to
// others.
func TestAnUnreadableObjectOfAStrictGroupIsAnError(t *testing.T) {
	server := serve(t, map[string]servedKind{"/apis/kueue.x-k8s.io/v1beta1/workloads": {"Workload",
		`{"name":"a"},"spec":{"priority":"high"},"status":{"admission":{"clusterQueue":"q"}}`}})
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(workloads, meta.RESTScopeNamespace)
	kinds := listWatchers{config: &rest.Config{Host: server.URL},
		options: cache.Options{Scheme: testcluster.Scheme(), Mapper: mapper, HTTPClient: server.Client()}}
	for whole, want := range map[string][]watch.EventType{
		"batch.volcano.sh": {watch.Bookmark}, // no events of the object, nor of its later changes
		"kueue.x-k8s.io":   {watch.Error},
	} {
		kinds.strictGroups = []string{whole}
		lw := toolscache.ToWatcherWithContext(kinds.forObject(&kueue.Workload{}, &toolscache.ListWatch{}))
		w, err := lw.WatchWithContext(t.Context(),
			metav1.ListOptions{SendInitialEvents: ptr.To(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
		if err != nil {
			t.Fatal(err)
		}
		var got []watch.EventType
		for len(got) < len(want) {
			got = append(got, (<-w.ResultChan()).Type)
		}
		w.Stop()
		if !slices.Equal(got, want) {
			t.Errorf("with the strict group %s: got events %q, want %q", whole, got, want)
		}
	}
	const bad = `{"apiVersion":"kueue.x-k8s.io/v1beta1","kind":"Workload","metadata":{"name":"a"},"spec":{"priority":"high"},"status":{"admission":{"clusterQueue":"q"}}}`
	if _, _, err := decoderOf(workloads, true, strings.NewReader(`{"type":"ADDED","object":`+bad+"}\n")).
		Decode(); err == nil {
		t.Error("an event of an unreadable Workload was decoded, want an error")
	}
}

// TestAnUnreadableWorkloadWithoutQuotaIsSkipped: whoever may create a Workload could otherwise keep the operator from
// reading all others. It depends on the admission, wherever it and what does not fit are in the object.
func TestAnUnreadableWorkloadWithoutQuotaIsSkipped(t *testing.T) {
	const head = `{"apiVersion":"kueue.x-k8s.io/v1beta1","kind":"Workload","metadata":{"name":"bad"},`
	const good = `{"apiVersion":"kueue.x-k8s.io/v1beta1","kind":"Workload","metadata":{"name":"good"}}`
	for rest, skipped := range map[string]bool{
		`"spec":{"priority":3000000000}}`:                                                                 true,
		`"spec":{"podSets":[{"count":3000000000,"name":"a"}],"active":true},"status":{}}`:                 true,
		`"spec":{"priority":3000000000},"status":null}`:                                                   true,
		`"spec":{"priority":3000000000},"status":{"conditions":[{"type":"admission"}],"admission":null}}`: true,
		// not its own status
		`"spec":{"priority":3000000000,"status":{"admission":{"clusterQueue":"q"}}}}`:                    true,
		`"spec":{"priority":3000000000},"status":{"admission":{"clusterQueue":"q"}}}`:                    false,
		`"spec":{"podSets":[{"count":3000000000}]},"status":{"conditions":[],"admission":{}}}`:           false,
		`"status":{"admission":{"clusterQueue":"q"}},"spec":{"priority":3000000000}}`:                    false,
		`"status":{"admission":{"podSetAssignments":[{"count":3000000000}]}}}`:                           false,
		`"status":{"accumulatedPastExexcutionTimeSeconds":3000000000,"admission":{"clusterQueue":"q"}}}`: false,
		`"spec":{"priority":3000000000},"status":5}`:                                                     false, // who knows
	} {
		var reported []string
		lists := jsonLists{kind: workloads, newObject: func() (runtime.Object, error) { return &kueue.Workload{}, nil },
			skip: skipWaiting,
			onUnreadable: func(_ schema.GroupVersionKind, object metav1.Object, _ error) {
				reported = append(reported, object.GetName())
			}}
		_, got, err := all(lists,
			strings.NewReader(`{"items":[`+good+`,`+head+rest+`,`+good+`],"metadata":{"resourceVersion":"7"}}`))
		if skipped && (err != nil || len(got) != 2 || !slices.Equal(reported, []string{"bad"})) {
			t.Errorf("a list with %s: got %d objects, error %v and reports of %q, want the other two and a report", rest,
				len(got), err, reported)
		}
		if !skipped && err == nil {
			t.Errorf("a list with %s was read, want an error", rest)
		}
		_, object, err := decoderOf(workloads, true, strings.NewReader(`{"type":"ADDED","object":`+head+rest+"}\n")).Decode()
		if _, is := object.(*unreadable); is != skipped || (err == nil) != skipped {
			t.Errorf("an event of %s: got %T and error %v, want it skipped: %v", rest, object, err, skipped)
		}
	}
}

// TestAWatchContinuesAfterAnUnreadableObject: the previous state of the object stays in the cache until it is deleted.
func TestAWatchContinuesAfterAnUnreadableObject(t *testing.T) {
	var stream bytes.Buffer
	for _, event := range [][2]string{{"ADDED", unreadableJob}, {"ADDED", readableJob}, {"MODIFIED", unreadableJob},
		{"DELETED", unreadableJob}, {"MODIFIED", readableJob}} {
		stream.WriteString(`{"type":"` + event[0] + `","object":` + event[1] + "}\n")
	}
	sent := stream.String()
	o := listThenWatch{
		newObject: newVCJob, lists: vcJobLists,
		list: func(context.Context, metav1.ListOptions) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(`{"items":[],"metadata":{"resourceVersion":"7"}}`)), nil
		},
		watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			return watch.NewStreamWatcher(decoderOf(vcJobs, true, strings.NewReader(sent)), nil), nil
		},
	}
	want := []string{"ADDED good", "DELETED bad", "MODIFIED good"}
	for how, begin := range map[string]func() (watch.Interface, error){
		"from a list": func() (watch.Interface, error) { return o.open(t.Context(), beginning) },
		"from a version": func() (watch.Interface, error) {
			return o.resume(t.Context(), metav1.ListOptions{ResourceVersion: "7"})
		},
	} {
		w, err := begin()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for event := range w.ResultChan() {
			job, ok := event.Object.(*volcano.Job)
			if !ok {
				t.Fatalf("%s: unexpected event of %T: %+v", how, event.Object, event)
			}
			if event.Type == watch.Bookmark {
				continue
			}
			got = append(got, string(event.Type)+" "+job.Name)
			if event.Type == watch.Deleted && (job.Namespace != "n" || job.UID != "u" || job.ResourceVersion != "5") {
				t.Errorf("%s: metadata of the deleted object = %+v", how, job.ObjectMeta)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got events %q, want %q", how, got, want)
		}
	}
}
