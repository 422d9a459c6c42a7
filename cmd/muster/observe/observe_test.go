package observe

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/musterhq/muster/cmd/muster/view"
)

// served is what an API server of a test answers, by path. It answers watches with nothing, until they end.
func served(t *testing.T, answers map[string]string) *rest.Config {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer, known := answers[r.URL.Path]
		switch {
		case !known:
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`))
		case r.URL.Query().Get("watch") != "":
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			_, _ = w.Write([]byte(answer))
		}
	}))
	t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: authority}}
}

// TestAJobThatCannotBeReadIsLeftOutAndNamed: the others of its kind are listed, by an API server whose definition of VCJobs lets in a
// timeout that is no duration.
func TestAJobThatCannotBeReadIsLeftOutAndNamed(t *testing.T) {
	const emptyOf = `{"apiVersion":"kueue.x-k8s.io/v1beta1","kind":"%sList","metadata":{"resourceVersion":"7"},"items":[]}`
	config := served(t, map[string]string{
		"/api": `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[
			{"name":"kueue.x-k8s.io","versions":[{"groupVersion":"kueue.x-k8s.io/v1beta1","version":"v1beta1"}]},
			{"name":"batch.volcano.sh","versions":[{"groupVersion":"batch.volcano.sh/v1alpha1","version":"v1alpha1"}]}]}`,
		"/apis/kueue.x-k8s.io/v1beta1": `{"kind":"APIResourceList","groupVersion":"kueue.x-k8s.io/v1beta1","resources":[
			{"name":"workloads","kind":"Workload","namespaced":true},{"name":"localqueues","kind":"LocalQueue","namespaced":true}]}`,
		"/apis/batch.volcano.sh/v1alpha1":        `{"kind":"APIResourceList","groupVersion":"batch.volcano.sh/v1alpha1","resources":[{"name":"jobs","kind":"Job","namespaced":true}]}`,
		"/apis/kueue.x-k8s.io/v1beta1/workloads": fmt.Sprintf(emptyOf, "Workload"), "/apis/kueue.x-k8s.io/v1beta1/localqueues": fmt.Sprintf(emptyOf, "LocalQueue"),
		"/apis/batch.volcano.sh/v1alpha1/jobs": `{"apiVersion":"batch.volcano.sh/v1alpha1","kind":"JobList","metadata":{"resourceVersion":"7"},"items":[
			{"apiVersion":"batch.volcano.sh/v1alpha1","kind":"Job","metadata":{"namespace":"ml","name":"good"},"spec":{"queue":"q"}},
			{"apiVersion":"batch.volcano.sh/v1alpha1","kind":"Job","metadata":{"namespace":"ml","name":"bad"},"spec":{"policies":[{"event":"*","timeout":"5 minutes"}]}},
			{"apiVersion":"batch.volcano.sh/v1alpha1","kind":"Job","metadata":{"namespace":"ml","name":"other"},"spec":{"queue":"q"}}]}`,
	})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cluster, err := Open(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	for how, look := range map[string]func() (*view.Seen, error){
		"once":       func() (*view.Seen, error) { return cluster.See(ctx, Scope{}) },
		"everything": func() (*view.Seen, error) { return cluster.SeeEverything(ctx, "ml") },
		"as it changes": func() (*view.Seen, error) {
			watch, err := cluster.Watch(ctx, Scope{})
			if err != nil {
				return nil, err
			}
			seen, err := watch.See(ctx)
			if err == nil {
				seen.Unreadable = watch.Unreadable
			}
			return seen, err
		},
	} {
		seen, err := look()
		if err != nil {
			t.Fatalf("%s: %v", how, err)
		}
		names := map[string]bool{}
		for _, job := range seen.VCJobs {
			names[job.Name] = true
		}
		if len(seen.VCJobs) != 2 || !names["good"] || !names["other"] {
			t.Errorf("%s: the jobs are %v", how, names)
		}
		if bad := seen.Unreadable; len(bad) != 1 || bad[0].Name != "bad" || bad[0].Namespace != "ml" || bad[0].Resource.String() != "jobs.batch.volcano.sh" || bad[0].Why == nil {
			t.Errorf("%s: what cannot be read is %+v", how, bad)
		}
	}
}

func TestAClusterWithoutTheQueueAPIIsNamedAsSuch(t *testing.T) {
	config := served(t, map[string]string{
		"/api":  `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`,
	})
	cluster, err := Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.See(context.Background(), Scope{}); !errors.Is(err, ErrNotInstalled) {
		t.Errorf("See: %v, want ErrNotInstalled", err)
	}
	if _, err := cluster.Watch(context.Background(), Scope{}); !errors.Is(err, ErrNotInstalled) {
		t.Errorf("Watch: %v, want ErrNotInstalled", err)
	}
}
