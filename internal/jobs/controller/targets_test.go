package controller_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	bus "github.com/musterhq/muster/api/volcano/bus/v1alpha1"
	"github.com/musterhq/muster/internal/jobs/vcjob"
)

// commandFor returns a Command for ns/job with the UID, "" for any.
func commandFor(name string, uid types.UID) *bus.Command {
	return &bus.Command{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name),
			CreationTimestamp: metav1.NewTime(epoch)}, Action: bus.TerminateJobAction,
		TargetObject: &metav1.OwnerReference{APIVersion: volcano.GroupVersion.String(), Kind: "Job", Name: "job", UID: uid},
	}
}

// TestCommandsForJobsThatDoNotExistAreDeleted: a job that is created later is another one, so they have no effect.
func TestCommandsForJobsThatDoNotExistAreDeleted(t *testing.T) {
	w := newPodWorld(t, fault{}, of(vcjob.API), commandFor("by-name", ""), commandFor("by-uid", "former"))
	w.reconcile()
	if left := list[bus.CommandList](w.world).Items; len(left) > 0 {
		t.Errorf("Commands for a job that does not exist stay: %v", left)
	}
	if events := strings.Join(w.events.events, "\n"); strings.Count(events, "TargetNotFound") != 2 {
		t.Errorf("not each of them says why it is deleted: %s", events)
	}
}

// TestCommandsForAFormerJobAreDeleted while those for the job of its name are executed.
func TestCommandsForAFormerJobAreDeleted(t *testing.T) {
	w := newPodWorld(t, fault{}, of(vcjob.API), newVCJob(), commandFor("for-former", "former"))
	w.reconcile()
	if left := list[bus.CommandList](w.world).Items; len(left) > 0 {
		t.Errorf("a Command for a former job stays: %v", left)
	}
	w.put(commandFor("for-this", "job-uid"))
	w.settle()
	if phase := list[volcano.JobList](w.world).Items[0].Status.State.Phase; phase != volcano.Terminated {
		t.Errorf("the job is %s after a Command for it", phase)
	}
}
