package observe

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/musterhq/muster/cmd/muster/view"
)

// served returns an API server that maps paths to responses. A watch is sent the events of its path and then ends.
func served(t *testing.T, answers map[string]string, events map[string]chan string) *rest.Config {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer, known := answers[r.URL.Path]
		switch {
		case !known:
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`))
		case r.URL.Query().Get("watch") != "":
			for {
				w.(http.Flusher).Flush()
				select {
				case event := <-events[r.URL.Path]:
					_, _ = w.Write([]byte(event + "\n"))
				case <-r.Context().Done():
					return
				}
			}
		case answer == "forbidden":
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`))
		default:
			_, _ = w.Write([]byte(answer))
		}
	}))
	t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: authority}}
}

const vcJobs = "/apis/batch.volcano.sh/v1alpha1/jobs"

// withVCJobs returns the responses of an API server that serves queues and VCJobs.
func withVCJobs(items string) map[string]string {
	const emptyOf = `{"apiVersion":"kueue.x-k8s.io/v1beta1","kind":"%sList","metadata":{"resourceVersion":"7"},"items":[]}`
	return map[string]string{
		"/api": `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[
			{"name":"kueue.x-k8s.io","versions":[{"groupVersion":"kueue.x-k8s.io/v1beta1","version":"v1beta1"}]},
			{"name":"batch.volcano.sh","versions":[{"groupVersion":"batch.volcano.sh/v1alpha1","version":"v1alpha1"}]}]}`,
		"/apis/kueue.x-k8s.io/v1beta1": `{"kind":"APIResourceList","groupVersion":"kueue.x-k8s.io/v1beta1","resources":[
			{"name":"workloads","kind":"Workload","namespaced":true},{"name":"localqueues","kind":"LocalQueue","namespaced":true}]}`,
		"/apis/batch.volcano.sh/v1alpha1":          `{"kind":"APIResourceList","groupVersion":"batch.volcano.sh/v1alpha1","resources":[{"name":"jobs","kind":"Job","namespaced":true}]}`,
		"/apis/kueue.x-k8s.io/v1beta1/workloads":   fmt.Sprintf(emptyOf, "Workload"),
		"/apis/kueue.x-k8s.io/v1beta1/localqueues": fmt.Sprintf(emptyOf, "LocalQueue"),
		vcJobs: `{"apiVersion":"batch.volcano.sh/v1alpha1","kind":"JobList","metadata":{"resourceVersion":"7"},"items":[` + items + `]}`,
	}
}

// vcJob returns a VCJob as an API server sends it. A timeout of "5 minutes" cannot be decoded, "5m" can.
func vcJob(name, timeout string) string {
	return fmt.Sprintf(`{"apiVersion":"batch.volcano.sh/v1alpha1","kind":"Job","metadata":{"namespace":"ml","name":%[1]q,"uid":%[1]q,"resourceVersion":"8"},`+
		`"spec":{"queue":"q","policies":[{"event":"*","timeout":%q}]}}`, name, timeout)
}

// TestUndecodableJobIsLeftOutAndReported: the other jobs of the kind are listed.
func TestUndecodableJobIsLeftOutAndReported(t *testing.T) {
	config := served(t, withVCJobs(vcJob("good", "5m")+","+vcJob("bad", "5 minutes")+","+vcJob("other", "5m")), nil)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cluster, err := Open(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	for how, look := range map[string]func() (*view.Snapshot, error){
		"once":       func() (*view.Snapshot, error) { return cluster.Snapshot(ctx, Scope{}) },
		"everything": func() (*view.Snapshot, error) { return cluster.SnapshotAll(ctx, "ml") },
		"as it changes": func() (*view.Snapshot, error) {
			watch, err := cluster.Watch(ctx, Scope{})
			if err != nil {
				return nil, err
			}
			return watch.Snapshot(ctx)
		},
	} {
		snapshot, err := look()
		if err != nil {
			t.Fatalf("%s: %v", how, err)
		}
		names := map[string]bool{}
		for _, job := range snapshot.VCJobs {
			names[job.Name] = true
		}
		if len(snapshot.VCJobs) != 2 || !names["good"] || !names["other"] {
			t.Errorf("%s: jobs = %v, want good and other", how, names)
		}
		if bad := snapshot.Unreadable; len(bad) != 1 || bad[0].Name != "bad" || bad[0].Namespace != "ml" ||
			bad[0].Resource.String() != "jobs.batch.volcano.sh" || bad[0].Why == nil {
			t.Errorf("%s: unreadable objects = %+v, want the job bad", how, bad)
		}
	}
}

// TestUndecodableJobThatAppearsLaterIsReported: a watch reports it once, however often its status is written.
func TestUndecodableJobThatAppearsLaterIsReported(t *testing.T) {
	events := make(chan string)
	config := served(t, withVCJobs(vcJob("bad", "5 minutes")), map[string]chan string{vcJobs: events})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cluster, err := Open(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	watch, err := cluster.Watch(ctx, Scope{})
	if err != nil {
		t.Fatal(err)
	}
	var reported []string
	look := func() int {
		snapshot, err := watch.Snapshot(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, job := range snapshot.Unreadable {
			reported = append(reported, job.Name)
		}
		return len(snapshot.VCJobs)
	}
	look()
	for _, event := range []string{
		`{"type":"MODIFIED","object":` + vcJob("bad", "5 minutes") + `}`,
		`{"type":"ADDED","object":` + vcJob("later", "1 hour") + `}`,
		`{"type":"MODIFIED","object":` + vcJob("later", "1 hour") + `}`,
		`{"type":"ADDED","object":` + vcJob("good", "5m") + `}`,
	} {
		select {
		case events <- event:
		case <-ctx.Done():
			t.Fatal("timed out waiting for a watch")
		}
	}
	for look() == 0 {
		select {
		case <-watch.Changes():
		case <-ctx.Done():
			t.Fatal("timed out waiting for a job after the unreadable ones")
		}
	}
	if want := []string{"bad", "later"}; !slices.Equal(reported, want) {
		t.Errorf("reported %q, want %q", reported, want)
	}
}

// TestPodsOfAnEarlierJobOfTheSameNameAreOmitted: a job that is deleted with orphaned pods leaves them with its labels.
func TestPodsOfAnEarlierJobOfTheSameNameAreOmitted(t *testing.T) {
	answers := withVCJobs("")
	answers["/api/v1"] = `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","kind":"Pod","namespaced":true}]}`
	answers["/api/v1/namespaces/ml/pods"] = `{"apiVersion":"v1","kind":"PodList","metadata":{},"items":[
		{"metadata":{"name":"left","creationTimestamp":"2026-01-02T03:04:04Z"}},{"metadata":{"name":"own","creationTimestamp":"2026-01-02T03:04:05Z"}}]}`
	cluster, err := Open(t.Context(), served(t, answers, nil))
	if err != nil {
		t.Fatal(err)
	}
	pods, err := cluster.PodsOf(t.Context(),
		&view.Job{Namespace: "ml", Kind: "JobSet", Name: "again", CreatedAt: metav1.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)})
	if err != nil || len(pods) != 1 || pods[0].Name != "own" {
		t.Errorf("got %d pods, %v, want only the job's own", len(pods), err)
	}
}

// TestClaimsOfPodsThatHaveNoNode are read one by one, and only whether each exists.
func TestClaimsOfPodsThatHaveNoNode(t *testing.T) {
	answers := withVCJobs("")
	answers["/api/v1"] = `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"persistentvolumeclaims","kind":"PersistentVolumeClaim","namespaced":true}]}`
	answers["/api/v1/namespaces/ml/persistentvolumeclaims/data"] = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"data","namespace":"ml"}}`
	cluster, err := Open(t.Context(), served(t, answers, nil))
	if err != nil {
		t.Fatal(err)
	}
	pod := corev1.Pod{}
	for _, name := range []string{"data", "gone"} {
		pod.Spec.Volumes = append(pod.Spec.Volumes,
			corev1.Volume{VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}})
	}
	claims, err := cluster.ClaimsOf(t.Context(), "ml", []corev1.Pod{pod}, 2)
	if want := map[string]bool{"data": true, "gone": false}; err != nil || !maps.Equal(claims.Exists, want) ||
		len(claims.Unread) > 0 {
		t.Errorf("claims = %+v, %v, want %v", claims, err, want)
	}
}

// TestEventsOfAPodWhoseVolumesAreNotMounted are read of one pod, and say nothing if the user may not read them.
func TestEventsOfAPodWhoseVolumesAreNotMounted(t *testing.T) {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ml", UID: "pu"},
		Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
	events := `{"kind":"EventList","apiVersion":"v1","items":[{"reason":"FailedMount","involvedObject":{"uid":"pu"},"lastTimestamp":"2026-01-02T03:04:05Z",
		"message":"MountVolume.SetUp failed for volume \"config\" : configmap \"gone\" not found"}]}`
	const made = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"gone","namespace":"ml"}}`
	for name, tc := range map[string]struct{ answer, configMap, want string }{
		"made since":               {events, made, ""},
		"the ConfigMap is refused": {events, "forbidden", `volume "config" cannot be mounted: configmap "gone" not found`},
		"readable":                 {events, "", `volume "config" cannot be mounted: configmap "gone" not found`},
		"refused":                  {"forbidden", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			answers := withVCJobs("")
			answers["/api/v1"] = `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"events","kind":"Event","namespaced":true},{"name":"configmaps","kind":"ConfigMap","namespaced":true}]}`
			answers["/api/v1/namespaces/ml/events"] = tc.answer
			if tc.configMap != "" {
				answers["/api/v1/namespaces/ml/configmaps/gone"] = tc.configMap
			}
			cluster, err := Open(t.Context(), served(t, answers, nil))
			if err != nil {
				t.Fatal(err)
			}
			mounts, err := cluster.MountsOf(t.Context(), "ml", []corev1.Pod{pod}, 1, time.Date(2026, 1, 2, 3, 5, 0, 0, time.UTC))
			_, got := mounts.Of(&pod, func(*corev1.Pod) (string, string) { return "", "" })
			if err != nil || got != tc.want {
				t.Errorf("got %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}

func TestClusterWithoutTheQueueAPIIsReported(t *testing.T) {
	config := served(t, map[string]string{
		"/api":  `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`,
	}, nil)
	cluster, err := Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.Snapshot(context.Background(), Scope{}); !errors.Is(err, ErrNotInstalled) {
		t.Errorf("Snapshot: %v, want ErrNotInstalled", err)
	}
	if _, err := cluster.Watch(context.Background(), Scope{}); !errors.Is(err, ErrNotInstalled) {
		t.Errorf("Watch: %v, want ErrNotInstalled", err)
	}
}

// TestPodsOfManyJobsAreReadByKind: one bounded request for each kind of jobs, and none for a name that no label can
// hold. Pods that the user may not list are left out.
func TestPodsOfManyJobsAreReadByKind(t *testing.T) {
	const pods = "/api/v1/namespaces/ml/pods"
	var asked []string
	forbidden := false
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/api":
			_, _ = w.Write([]byte(`{"kind":"APIVersions","versions":["v1"]}`))
		case r.URL.Path == "/apis":
			_, _ = w.Write([]byte(`{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`))
		case r.URL.Path == "/api/v1":
			_, _ = w.Write([]byte(`{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","kind":"Pod","namespaced":true},{"name":"configmaps","kind":"ConfigMap","namespaced":true}]}`))
		case r.URL.Path == pods && forbidden:
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`))
		case r.URL.Path == pods:
			asked = append(asked, r.URL.Query().Get("labelSelector")+" "+r.URL.Query().Get("limit"))
			_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"PodList","metadata":{},"items":[{"metadata":{"name":"p","namespace":"ml"}}]}`))
		default:
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`))
		}
	}))
	t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	cluster, err := Open(t.Context(),
		&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: authority}})
	if err != nil {
		t.Fatal(err)
	}
	var jobs []*view.Job
	for _, name := range []string{"a", "b", strings.Repeat("long", 16)} {
		jobs = append(jobs, &view.Job{Namespace: "ml", Kind: "JobSet", Name: name},
			&view.Job{Namespace: "ml", Kind: "TrainingJob", Name: name})
	}
	got, err := cluster.PodsOfAll(t.Context(), "ml", jobs)
	if err != nil || len(got) != 2 {
		t.Errorf("got %d pods: %v, want those of both requests", len(got), err)
	}
	if want := []string{"jobset.sigs.k8s.io/jobset-name in (a,b) 500",
		"training.kubeflow.org/job-name in (a,b) 500"}; !slices.Equal(asked, want) {
		t.Errorf("requests: %q, want %q", asked, want)
	}
	forbidden = true
	if got, err := cluster.PodsOfAll(t.Context(), "ml", jobs); err != nil || len(got) > 0 {
		t.Errorf("without the right: %d pods, %v; want neither", len(got), err)
	}
	asked = nil
	if _, err := cluster.PodsOfAll(t.Context(), "ml", nil); err != nil || asked != nil {
		t.Errorf("for no jobs: requests %q, %v; want none", asked, err)
	}
}
