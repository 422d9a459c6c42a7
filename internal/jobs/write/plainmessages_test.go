package write

import (
	"errors"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
)

const (
	hostile = "file 'rel\x1b[2J\x1b]0;pwned\a' and\n\u202egpj.exe"
	tamed   = `file 'rel\x1b[2J\x1b]0;pwned\x07' and\n\u202egpj.exe`
)

// TestStatusesHaveNoControlCharacters: whichever API's planner puts a user's text into a message, kubectl prints it.
func TestStatusesHaveNoControlCharacters(t *testing.T) {
	for name, tc := range map[string]struct {
		job     client.Object
		message func(client.Object) string
	}{
		"LatticeJob": {&lattice.LatticeJob{Status: lattice.LatticeJobStatus{Message: hostile}},
			func(o client.Object) string { return o.(*lattice.LatticeJob).Status.Message }},
		"VCJob": {&volcano.Job{Status: volcano.JobStatus{State: volcano.JobState{Message: hostile}}},
			func(o client.Object) string { return o.(*volcano.Job).Status.State.Message }},
		"JobSet": {&jobset.JobSet{Status: jobset.JobSetStatus{Conditions: []metav1.Condition{{Message: hostile}}}},
			func(o client.Object) string { return o.(*jobset.JobSet).Status.Conditions[0].Message }},
		"GenericJob": {&tensorstack.GenericJob{
			Status: tensorstack.GenericJobStatus{Conditions: []tensorstack.JobCondition{{Message: hostile}}}},
			func(o client.Object) string { return o.(*tensorstack.GenericJob).Status.Conditions[0].Message }},
		"TrainingJob": {trainingJobThatSays(hostile),
			func(o client.Object) string {
				return o.(*breezeml.TrainingJob).Status.ExecStatus.Conditions[0].Message
			}},
	} {
		t.Run(name, func(t *testing.T) {
			makePlain(tc.job)
			if got := tc.message(tc.job); got != tamed {
				t.Errorf("got %q, want %q", got, tamed)
			}
		})
	}
}

// TestExecutorWritesPlainMessages: the status of a plan and its events, and the error of the API server in the event of
// a refused write, which repeats what the user wrote.
func TestExecutorWritesPlainMessages(t *testing.T) {
	b := newExecutorTest(t)
	status := b.job.DeepCopy()
	status.Status.Conditions = []batchv1.JobCondition{{Type: "Said", Status: "True", Message: hostile}}
	b.fail["create c"] = errors.Join(forbidden, errors.New(hostile))
	if err := b.run(t, Batch{Status: status, Events: []Event{Normal("Said", hostile)},
		Writes: []Write{Create(child("c")).OrWarn("CreationFailed")}}); err == nil {
		t.Fatal("the refused write gave no error")
	}
	var written batchv1.Job
	if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(b.job), &written); err != nil {
		t.Fatal(err)
	}
	if got := written.Status.Conditions[0].Message; got != tamed {
		t.Errorf("the condition says %q, want %q", got, tamed)
	}
	if len(b.events.events) != 2 {
		t.Fatalf("events = %q, want 2", b.events.events)
	}
	for _, event := range b.events.events {
		if !strings.Contains(event, tamed) {
			t.Errorf("event %q does not have %q", event, tamed)
		}
	}
}

func trainingJobThatSays(message string) *breezeml.TrainingJob {
	job := &breezeml.TrainingJob{}
	job.Status.ExecStatus.Conditions = []breezeml.JobCondition{{Message: message}}
	return job
}
