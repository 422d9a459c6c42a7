package rendezvous

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/rendezvous/progress"
)

// at14 is when the jobs of these tests report.
var at14 = time.Date(2026, 11, 30, 14, 0, 0, 0, time.UTC)

// operatorReporting is a server with reports, in a cluster with the objects.
type operatorReporting struct {
	t       *testing.T
	clock   *testclock.FakeClock
	reports *reports
	leads   bool
	busy    error // why no pod can be identified
	paths   http.Handler
}

func newOperatorReporting(t *testing.T, objects ...client.Object) *operatorReporting {
	t.Helper()
	o := &operatorReporting{t: t, clock: testclock.NewFakeClock(at14), leads: true}
	o.reports = newReports(clientOf(t, objects...), o.clock, logr.Discard())
	for _, object := range objects {
		if w, is := object.(*kueue.Workload); is {
			o.reports.handler().OnAdd(w, true)
		}
	}
	s := &server{reports: o.reports, leads: func() bool { return o.leads }, log: logr.Discard(),
		identify: func(_ context.Context, token string) (caller, error) {
			name, ok := strings.CutPrefix(token, "token-of-")
			if !ok {
				return caller{}, errUnknown
			}
			return caller{Namespace: "ns", Name: name, UID: "uid-" + name}, o.busy
		}}
	o.paths = s.paths()
	return o
}

// post sends the body with a pod's token to the path of a job, and returns the code and the body of the answer.
func (o *operatorReporting) post(pod, path, body string) (code int, answer string) {
	o.t.Helper()
	request := httptest.NewRequestWithContext(o.t.Context(), http.MethodPost, path, strings.NewReader(body))
	request.Header.Set("Authorization", "Bearer token-of-"+pod)
	if pod == "" {
		request.Header.Set("Authorization", "Bearer stolen")
	}
	recorder := httptest.NewRecorder()
	o.paths.ServeHTTP(recorder, request)
	return recorder.Code, recorder.Body.String()
}

// report sends a report of the remaining seconds that must be accepted.
func (o *operatorReporting) report(pod, job string, seconds int) {
	o.t.Helper()
	body := fmt.Sprintf(`{"trainerStatus":{"estimatedRemainingSeconds":%d}}`, seconds)
	if code, answer := o.post(pod, statusPath(job), body); code != http.StatusOK {
		o.t.Fatalf("%s reports for %s: %d %s", pod, job, code, answer)
	}
}

// ends returns when the job of the Workload is expected to end, "" if that is not known.
func (o *operatorReporting) ends(w *kueue.Workload) string {
	found := o.reports.runs[keyOf(w)]
	if found == nil {
		return "does not run"
	}
	if end, known := found.End(); known {
		return end.Format(time.TimeOnly)
	}
	return ""
}

func statusPath(job string) string {
	return "/apis/trainer.kubeflow.org/v1alpha1/namespaces/ns/trainjobs/" + job + "/status"
}

// podOfJob returns a pod that the owner controls, with the completion index.
func podOfJob(name string, index int, owner []metav1.OwnerReference) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name),
		OwnerReferences: owner, Labels: map[string]string{batchv1.JobCompletionIndexAnnotation: fmt.Sprint(index)}}}
}

// admittedWorkload returns the Workload of the job, admitted at 13:00.
func admittedWorkload(name string, owner []metav1.OwnerReference) *kueue.Workload {
	return &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name), OwnerReferences: owner},
		Status: kueue.WorkloadStatus{Conditions: []metav1.Condition{{
			Type: kueue.WorkloadAdmitted, Status: metav1.ConditionTrue,
			Reason: "Admitted", LastTransitionTime: metav1.NewTime(at14.Add(-time.Hour))}}},
	}
}

var (
	ofJobA  = controlledBy("batch/v1", "Job", "a", "uid-job-a")
	ofJobB  = controlledBy("batch/v1", "Job", "b", "uid-job-b")
	ofJobC  = controlledBy("batch/v1", "Job", "c", "uid-job-c")
	ofSet   = controlledBy("jobset.x-k8s.io/v1alpha2", "JobSet", "set", "uid-set")
	ofSet0  = controlledBy("batch/v1", "Job", "set-w-0", "uid-set-w-0")
	ofVC    = controlledBy("batch.volcano.sh/v1alpha1", "Job", "lj", "uid-vc")
	ofLJ    = controlledBy("lattice.dev/v1alpha1", "LatticeJob", "lj-lattice", "uid-lj")
	nothing = []metav1.OwnerReference(nil)
)

// world has a job of each shape, and pods of them.
func world() []client.Object {
	named := func(name, uid string, owner []metav1.OwnerReference) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(uid), OwnerReferences: owner}
	}
	return []client.Object{
		admittedWorkload("wl-a", ofJobA), podOfJob("a-0", 0, ofJobA), podOfJob("a-1", 1, ofJobA), podOfJob("a-2", 2, ofJobA),
		admittedWorkload("wl-b", ofJobB), podOfJob("b-0", 0, ofJobB),
		podOfJob("c-0", 0, ofJobC), // not queued
		&batchv1.Job{ObjectMeta: named("set-w-0", "uid-set-w-0", ofSet)},
		&jobset.JobSet{ObjectMeta: named("set", "uid-set", nil)},
		admittedWorkload("wl-set", ofSet), podOfJob("set-w-0-0", 0, ofSet0),
		&volcano.Job{ObjectMeta: named("lj", "uid-vc", ofLJ)},
		admittedWorkload("wl-lj", ofLJ), podOfJob("lj-t-0", 0, ofVC),
		podOfJob("alone", 0, nothing),
	}
}

func TestReportsAreAnsweredAsByTrainer(t *testing.T) {
	const half = `{"trainerStatus":{"progressPercentage":50,"estimatedRemainingSeconds":600}}`
	for what, test := range map[string]struct {
		pod, path, body string
		want            int
		reason          metav1.StatusReason
	}{
		"a report":                 {"a-0", statusPath("a"), half, 200, ""},
		"an empty object":          {"a-0", statusPath("a"), `{}`, 200, ""},
		"of a JobSet, by its name": {"set-w-0-0", statusPath("set"), half, 200, ""},
		"of a JobSet, by its Job":  {"set-w-0-0", statusPath("set-w-0"), half, 200, ""},
		"of a job without a queue": {"c-0", statusPath("c"), half, 200, ""},
		"without a pod's token":    {"", statusPath("a"), half, 403, metav1.StatusReasonForbidden},
		"for another job":          {"a-0", statusPath("b"), half, 403, metav1.StatusReasonForbidden},
		"for another namespace": {"a-0", strings.Replace(statusPath("a"), "/ns/", "/other/", 1), half, 403,
			metav1.StatusReasonForbidden},
		"of a pod that no job has":     {"alone", statusPath("a"), half, 404, metav1.StatusReasonNotFound},
		"of a pod that does not exist": {"gone", statusPath("a"), half, 404, metav1.StatusReasonNotFound},
		"to another path":              {"a-0", statusPath("a") + "/x", half, 404, metav1.StatusReasonNotFound},
		"that is too large": {"a-0", statusPath("a"), strings.Repeat(" ", progress.MaxBytes) + half, 413,
			metav1.StatusReasonRequestEntityTooLarge},
		"that is invalid": {"a-0", statusPath("a"), `{"trainerStatus":{"progressPercentage":200}}`, 422,
			metav1.StatusReasonInvalid},
		"that is no JSON": {"a-0", statusPath("a"), `50 %`, 422, metav1.StatusReasonInvalid},
	} {
		code, answer := newOperatorReporting(t, world()...).post(test.pod, test.path, test.body)
		if code != test.want {
			t.Errorf("a report %s: %d %s, want %d", what, code, answer, test.want)
		}
		var status metav1.Status
		if err := json.Unmarshal([]byte(answer), &status); err != nil || status.Reason != test.reason ||
			test.reason != "" && (status.Code != int32(test.want) || status.Kind != "Status" || status.Message == "") {
			t.Errorf("a report %s: answer %s, error %v, want the reason %q", what, answer, err, test.reason)
		}
		if code == 200 && strings.TrimSpace(answer) != test.body {
			t.Errorf("a report %s: answer %s, want %s", what, answer, test.body)
		}
	}
}

func TestReportsWaitForTheLeader(t *testing.T) {
	o := newOperatorReporting(t, world()...)
	o.leads = false
	if code, answer := o.post("a-0", statusPath("a"), `{}`); code != 503 || !strings.Contains(answer, "lead") {
		t.Errorf("the former leader answers %d %s", code, answer)
	}
	o.leads, o.busy = true, errBusy
	if code, answer := o.post("a-0", statusPath("a"), `{}`); code != 503 {
		t.Errorf("an operator that identifies too many pods answers %d %s", code, answer)
	}
	o.busy = errors.New("secret")
	if code, answer := o.post("a-0", statusPath("a"), `{}`); code != 500 || strings.Contains(answer, "secret") {
		t.Errorf("an operator that cannot ask the API server answers %d %s", code, answer)
	}
}

// TestAReportChangesOnlyItsOwnJob: also one that names another job.
func TestAReportChangesOnlyItsOwnJob(t *testing.T) {
	o := newOperatorReporting(t, world()...)
	o.report("a-0", "a", 600)
	o.report("set-w-0-0", "set", 1200)
	o.report("lj-t-0", "lj-lattice", 1800)
	o.post("a-0", statusPath("b"), `{"trainerStatus":{"estimatedRemainingSeconds":1}}`)
	for workload, want := range map[string]string{
		"wl-a": "14:10:00", "wl-b": "", "wl-set": "14:20:00", "wl-lj": "14:30:00"} {
		if got := o.ends(admittedWorkload(workload, nil)); got != want {
			t.Errorf("%s: ends %q, want %q", workload, got, want)
		}
	}
}

// TestNobodyReportsForAJobOfAnotherNamespace: users can write the UID of any object into an owner reference.
func TestNobodyReportsForAJobOfAnotherNamespace(t *testing.T) {
	theirs := admittedWorkload("wl-a", ofJobA)
	theirs.Namespace = "other"
	o := newOperatorReporting(t, theirs, podOfJob("a-0", 0, ofJobA))
	o.report("a-0", "a", 600)
	if got := o.ends(theirs); got != "" {
		t.Errorf("the job of the other namespace ends %q, want nothing known", got)
	}
}

func TestTheFirstPodOfAJobIsHeard(t *testing.T) {
	o, a := newOperatorReporting(t, world()...), admittedWorkload("wl-a", nil)
	o.report("a-2", "a", 60)
	o.report("a-1", "a", 600)
	o.report("a-2", "a", 10)
	if got := o.ends(a); got != "14:10:00" {
		t.Errorf("ends %q, want what pod 1 says", got)
	}
	o.clock.Step(progress.Recent)
	o.report("a-2", "a", 60)
	if got := o.ends(a); got != "14:06:00" {
		t.Errorf("ends %q, want what pod 2 says, since pod 1 is silent", got)
	}
}

// TestOtherPodsCannotSilenceTheFirst: they share a budget, which is not that of the first pod.
func TestOtherPodsCannotSilenceTheFirst(t *testing.T) {
	o := newOperatorReporting(t, world()...)
	o.report("a-1", "a", 600)
	refused := 0
	for range 2 * burstOfOthers {
		if code, _ := o.post("a-2", statusPath("a"), `{}`); code == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused < burstOfOthers {
		t.Errorf("%d of %d reports of another pod were refused", refused, 2*burstOfOthers)
	}
	o.report("a-1", "a", 1200)
	o.report("a-0", "a", 1800)
	o.report("b-0", "b", 60)
	for range burstOfFirst {
		o.post("a-0", statusPath("a"), `{}`)
	}
	if code, _ := o.post("a-0", statusPath("a"), `{}`); code != http.StatusTooManyRequests {
		t.Errorf("the first pod is answered %d, however often it reports", code)
	}
	o.clock.Step(2 * time.Second)
	o.report("a-0", "a", 1800)
}

// TestWhatIsKeptIsBoundedByWhatRuns: nothing is kept of Workloads that do not run.
func TestWhatIsKeptIsBoundedByWhatRuns(t *testing.T) {
	o, w := newOperatorReporting(t, world()...), admittedWorkload("wl-a", ofJobA)
	o.report("a-0", "a", 600)
	o.report("c-0", "c", 600)
	evicted, finished := w.DeepCopy(), w.DeepCopy()
	evicted.Status.Conditions = append(evicted.Status.Conditions,
		metav1.Condition{Type: kueue.WorkloadEvicted, Status: metav1.ConditionTrue})
	finished.Status.Conditions = append(finished.Status.Conditions,
		metav1.Condition{Type: kueue.WorkloadFinished, Status: metav1.ConditionTrue})
	for what, end := range map[string]func(){
		"evicted":  func() { o.reports.handler().OnUpdate(w, evicted) },
		"finished": func() { o.reports.handler().OnUpdate(w, finished) },
		"deleted":  func() { o.reports.handler().OnDelete(w) },
	} {
		o.reports.handler().OnAdd(w, false)
		o.report("a-0", "a", 600)
		if end(); len(o.reports.runs) != 3 || len(o.reports.byJob) != 3 || o.reports.writes.Waits(keyOf(w)) {
			t.Errorf("%s: %d runs and %d jobs are kept, want the 3 others (a write waits: %t)", what, len(o.reports.runs),
				len(o.reports.byJob), o.reports.writes.Waits(keyOf(w)))
		}
		o.report("a-0", "a", 600) // its pods run for a while
	}
}
