package observe

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/cmd/muster/view"
)

// requests records the requests for objects.
type requests struct {
	next http.RoundTripper
	made chan *http.Request
}

func (r requests) RoundTrip(request *http.Request) (*http.Response, error) {
	if strings.Contains(request.URL.Path, "/namespaces/ml/") {
		r.made <- request
	}
	return r.next.RoundTrip(request)
}

// TestNamesReadsOnlyMetadata: whole objects of 10,000 jobs would take longer than a shell may wait for completions.
func TestNamesReadsOnlyMetadata(t *testing.T) {
	const under = "/apis/batch.volcano.sh/v1alpha1/namespaces/ml/jobs"
	answers := withVCJobs("")
	answers[under] = `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"},"items":[
		{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"namespace":"ml","name":"one","uid":"1"}}]}`
	config, made := served(t, answers, nil), make(chan *http.Request, 100)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return requests{next, made} })
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cluster, err := Open(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := cluster.Names(ctx, "ml", "")
	if err != nil {
		t.Fatal(err)
	}
	if jobs := view.Jobs(snapshot, time.Now()); len(jobs) != 1 || jobs[0].Title() != "vcjob/one" {
		t.Errorf("jobs = %v, want vcjob/one", jobs)
	}
	close(made)
	lists := 0
	for request := range made {
		lists++
		if accept := request.Header.Get("Accept"); !strings.Contains(accept, "as=PartialObjectMetadataList") ||
			request.URL.Query().Get("resourceVersion") != "0" {
			t.Errorf("%s accepts %s: want metadata of any version", request.URL, accept)
		}
	}
	if lists < 2 {
		t.Errorf("%d lists, want those of VCJobs and Workloads at least", lists)
	}

	if snapshot, err := cluster.Names(ctx, "ml", "jobset"); err != nil || len(snapshot.VCJobs) > 0 {
		t.Errorf("the names of JobSets: error %v, and %d VCJobs: want JobSets alone", err, len(snapshot.VCJobs))
	}
}
