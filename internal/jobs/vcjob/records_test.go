package vcjob

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/musterhq/muster/api/muster"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	bus "github.com/musterhq/muster/api/volcano/bus/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/jobstest"
)

func TestRangesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		indices := rapid.SliceOfNDistinct(rapid.Int32Range(0, 200), 0, 100, rapid.ID[int32]).Draw(t, "indices")
		slices.Sort(indices)
		if got := readRanges(writeRanges(indices)); !slices.Equal(got, indices) {
			t.Fatalf("%v became %v through %q", indices, got, writeRanges(indices))
		}
	})
}

func FuzzInvalidRecordsAreRead(f *testing.F) {
	for _, text := range []string{"worker:0-3,5;ps:1", "worker=2;worker/3=1", ":", "a:9-1", "a:0-99999999999",
		"=;=1;a=-1", "a:-"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m := readPodRecords(&volcano.JobStatus{ControlledResources: map[string]string{succeededKey: text, failedKey: text,
			restartsKey: text}})
		for name, n := range m.restarts {
			if n <= 0 {
				t.Errorf("%s was restarted %d times", name, n)
			}
		}
	})
}

// TestValuesOfPods: they are read as they were written, also by versions that named the task of each pod.
func TestValuesOfPods(t *testing.T) {
	values := map[string]int64{"ps": 1, "worker": 2, "worker/0": 3, "worker/10": 4, "worker/2": 5,
		"worker-x/0": 6, "ps/0": 7}
	text := writeValues(values)
	jobstest.Equal(t, "text", "ps=1;ps/0=7;worker=2;worker-x/0=6;worker/0=3,10=4,2=5", text)
	for _, text := range []string{text, "ps=1;ps/0=7;worker=2;worker-x/0=6;worker/0=3;worker/10=4;worker/2=5;;x;y/;z/1=,2;=;"} {
		got := map[string]int64{}
		readValues(text, func(key string, n int64) { got[key] = n })
		jobstest.Equal(t, "values of "+text, values, got)
	}
}

// TestTheStatusOfTheLargestJobFitsIntoEtcd, with room for a spec: each pod has been restarted, and is evicted and waits
// for the timeout of a policy.
func TestTheStatusOfTheLargestJobFitsIntoEtcd(t *testing.T) {
	task := strings.Repeat("t", 63-len("job--9999"))
	job := newJob().with(task, 10000).on(bus.PodEvictedEvent, bus.RestartJobAction).is(volcano.Running)
	job.Spec.Policies[0].Timeout = &metav1.Duration{Duration: time.Hour}
	restarts := map[string]int32{}
	var children []any
	for i := range int32(10000) {
		restarts[slot(task, i)] = math.MaxInt32
		p := pod(fmt.Sprintf("job-%s-%d", task, i)).running().going()
		p.Annotations[muster.RestartsAnnotation] = strconv.Itoa(math.MaxInt32)
		children = append(children, p)
	}
	setRestarts(&job.Status, restarts)
	p := plan(jobs.Seen[*volcano.Job]{Job: job.Job, Admission: admitted(task, 10000), Children: of(children...), Now: now})
	job = then(p, job)
	if n := len(readPodRecords(&job.Status).evicted); n != 10000 {
		t.Fatalf("%d evictions are recorded, want 10000", n)
	}
	text, err := json.Marshal(job.Status)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > 600_000 {
		t.Errorf("the status has %d bytes", len(text))
	}
}
