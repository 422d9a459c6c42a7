package vcjob

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	bus "github.com/musterhq/muster/api/volcano/bus/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
)

// TestInvariantsHoldForRandomHistories: pods end, fail, are deleted and vanish, quota comes and goes, Commands are
// given and writes are lost, in any order. All the while what must not happen does not, and when it is over the job
// comes to an end.
func TestInvariantsHoldForRandomHistories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			h.happen()
			h.reconcile(rapid.Bool().Draw(t, "writes are lost"))
		}
		h.admission = admitted("ps", 1, "worker", 3)
		if stopped(h.job.Job) {
			h.commands = append(h.commands, h.command(bus.ResumeJobAction))
		}
		for range 40 {
			for _, p := range h.pods {
				if p.DeletionTimestamp == nil && !hasOutcome(h.job.Job) {
					p.ended(0)
				}
			}
			h.removeGoing()
			h.now = h.now.Add(5 * time.Minute) // the longest delay of a restart
			h.reconcile(false)
		}
		if !hasOutcome(h.job.Job) && h.job.Status.State.Phase != volcano.Aborted { // as a policy may want
			t.Fatalf("it has not ended: %+v", h.job.Status)
		}
	})
}

// history is a job and what the API server has of it.
type history struct {
	*rapid.T
	job       jobBuilder
	pods      map[string]podBuilder
	commands  []*bus.Command
	admission jobs.Admission
	asked     int
	now       time.Time
}

func newHistory(t *rapid.T) *history {
	action := rapid.SampledFrom([]bus.Action{bus.RestartJobAction, bus.RestartTaskAction, bus.RestartPodAction,
		bus.AbortJobAction, bus.TerminateJobAction, bus.CompleteJobAction})
	event := rapid.SampledFrom([]bus.Event{bus.PodFailedEvent, bus.PodEvictedEvent, bus.AnyEvent, bus.TaskCompletedEvent})
	job := newJob().with("ps", 1).with("worker", 3, dependsOn("", "ps")).on(event.Draw(t, "event"),
		action.Draw(t, "action"))
	if rapid.Bool().Draw(t, "pods begin anew, and their job too") {
		job.Spec.Policies = nil
		job.on(bus.PodFailedEvent, bus.RestartPodAction).on(bus.PodEvictedEvent, bus.RestartJobAction)
	}
	job.Spec.MaxRetry = rapid.Int32Range(3, 9).Draw(t, "maxRetry")
	job.Spec.MinAvailable = rapid.Int32Range(0, 4).Draw(t, "minAvailable")
	return &history{T: t, job: job, pods: map[string]podBuilder{}, admission: admitted("ps", 1, "worker", 3), now: now}
}

// happen has something happen to a pod, to the quota, or a Command be given.
func (h *history) happen() {
	if rapid.IntRange(0, 9).Draw(h.T, "command") == 0 {
		action := rapid.SampledFrom([]bus.Action{bus.AbortJobAction, bus.ResumeJobAction, bus.RestartJobAction}).
			Draw(h.T, "asks for")
		h.commands = append(h.commands, h.command(action))
	}
	h.admission = rapid.SampledFrom([]jobs.Admission{h.admission, waiting, {Grant: jobs.Stopping},
		admitted("ps", 1, "worker", 3), admitted("ps", 1, "worker", 1)}).Draw(h.T, "admission")
	for _, name := range []string{"job-ps-0", "job-worker-0", "job-worker-1", "job-worker-2"} {
		p, there := h.pods[name]
		if !there {
			continue
		}
		switch rapid.IntRange(0, 6).Draw(h.T, name) {
		case 0:
			p.running()
		case 1:
			p.ended(0)
		case 2:
			p.ended(1)
		case 3:
			p.going()
		case 4:
			delete(h.pods, name)
		}
	}
}

func (h *history) command(action bus.Action) *bus.Command {
	h.asked++
	return command(fmt.Sprintf("c%03d", h.asked), action)
}

func (h *history) removeGoing() {
	for name, p := range h.pods {
		if p.DeletionTimestamp != nil {
			delete(h.pods, name)
		}
	}
}

// reconcile plans and carries out the writes, or only the first of them if some are lost, and checks the invariants.
func (h *history) reconcile(lost bool) {
	children := []any{}
	for _, p := range h.pods {
		children = append(children, p)
	}
	for _, c := range h.commands {
		children = append(children, c)
	}
	got := plan(jobs.Seen[*volcano.Job]{Job: h.job.Job, Admission: h.admission, Children: of(children...), Now: h.now})
	before := h.job.Status
	if !lost || got.StatusFirst {
		h.job = then(got, h.job)
	}
	after := h.job.Status
	switch {
	case after.RetryCount < before.RetryCount || after.RetryCount > maxRetry(h.job.Job):
		h.Fatalf("retries %d, then %d", before.RetryCount, after.RetryCount)
	case after.Version < before.Version:
		h.Fatalf("version %d, then %d", before.Version, after.Version)
	case ended(before.State.Phase) && before.State.Phase != after.State.Phase:
		h.Fatalf("%s, then %s", before.State.Phase, after.State.Phase)
	}
	if before.State.Phase == volcano.Restarting && after.State.Phase == volcano.Pending {
		h.noneOfBefore(after.Version)
	}
	if lost {
		return
	}
	for _, w := range got.Writes {
		h.write(string(w.Verb()), w.Object())
	}
	if !h.admission.MayRun() {
		return
	}
	workers := 0
	for name, p := range h.pods {
		if name != "job-ps-0" && p.DeletionTimestamp == nil && p.Status.Phase != "Succeeded" && p.Status.Phase != "Failed" {
			workers++
		}
	}
	if !got.StatusFirst && workers > int(h.admission.PodSets["worker"].Count) {
		h.Fatalf("%d workers, %d admitted", workers, h.admission.PodSets["worker"].Count)
	}
}

// noneOfBefore sees that no pod is left of before the job began anew.
func (h *history) noneOfBefore(version int32) {
	for name, p := range h.pods {
		if of, err := strconv.Atoi(p.Annotations[volcano.JobVersionKey]); err != nil || int32(of) < version {
			h.Fatalf("pod %s of version %d is there in version %d", name, of, version)
		}
	}
}

func ended(phase volcano.JobPhase) bool {
	return phase == volcano.Completed || phase == volcano.Failed || phase == volcano.Terminated
}

func (h *history) write(verb string, object client.Object) {
	name := object.GetName()
	_, there := h.pods[name]
	switch o := object.(type) {
	case *bus.Command:
		for i, c := range h.commands {
			if c.UID == o.UID {
				h.commands = append(h.commands[:i:i], h.commands[i+1:]...)
				return
			}
		}
	default:
		switch {
		case verb == "create" && there:
			h.Fatalf("a second pod %s is made", name)
		case verb == "create":
			if !h.admission.MayRun() {
				h.Fatalf("pod %s is made without quota", name)
			}
			p := pod(name)
			p.Annotations = object.GetAnnotations()
			h.pods[name] = p
		case verb == "delete" && there:
			h.pods[name].going()
		}
	}
}
