package show

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/cmd/muster/view"
	"github.com/musterhq/muster/internal/engine/reason"
)

// nextCommand returns the command that the user would probably run next. It comes from the first of these that knows
// one: what blocks the job, its admission checks, its queue, its pods.
func nextCommand(e *view.Explanation) string {
	return cmp.Or(nextOfWaiting(e), nextOfStopped(e), nextOfChecks(e), nextOfQueue(e), nextOfPods(e))
}

// nextOfStopped returns the command that lets a deactivated job, or a job whose queue is stopped, go on; "" for any
// other.
func nextOfStopped(e *view.Explanation) string {
	job := &e.Job
	switch {
	case job.State == view.Suspended && job.Workload != "" && strings.HasPrefix(job.Reason, "Deactivated"):
		// Kubernetes has a kind Workload too; the short name kwl is unambiguous.
		return fmt.Sprintf(`muster kubectl patch kwl %s -n %s --type merge -p '{"spec": {"active": true}}'`,
			job.Workload, job.Namespace)
	case job.State == view.Pending && job.Reason == string(reason.OnHold):
		return resume(job, e.Line)
	}
	return ""
}

// nextOfChecks returns the command that shows the admission checks that the job waits for; "" if it waits for none.
func nextOfChecks(e *view.Explanation) string {
	if len(e.Checks) == 0 {
		return ""
	}
	names := ""
	for i := range e.Checks {
		if e.Checks[i].State != view.CheckMissing {
			names += " " + e.Checks[i].Name
		}
	}
	if names == "" {
		return "muster kubectl get admissionchecks"
	}
	return "muster kubectl describe admissionchecks" + names
}

// nextOfQueue returns the command that shows the queue of a job that waits in one; "" for any other.
func nextOfQueue(e *view.Explanation) string {
	job := &e.Job
	if job.State != view.Pending || job.Workload == "" {
		return ""
	}
	unseen := slices.Contains(e.Unseen, "workloads") || slices.Contains(e.Unseen, "clusterqueues")
	switch {
	case job.Queue != "" && unseen && e.Line == nil:
		return "muster kubectl get localqueues -n " + job.Namespace // no queue has the name that the job gives
	case job.Queue != "" && unseen: // `muster queues` needs rights beyond the namespace
		return fmt.Sprintf("muster kubectl describe localqueue %s -n %s", job.Queue, job.Namespace)
	case e.Line != nil && e.Line.Missing:
		return "muster queues" // the namespace may have no queue
	case job.Queue != "":
		return "muster queues -n " + job.Namespace
	}
	return ""
}

// nextOfPods returns the command that shows the logs of the job's pods, or the events of a job without logs; "" for a
// job whose pods cannot be told from others.
func nextOfPods(e *view.Explanation) string {
	job := &e.Job
	switch {
	case job.PodLabel() == "":
		return ""
	case job.State == view.Pending || job.State == view.Starting || job.State == view.Suspended, e.NoLogs:
		return fmt.Sprintf("muster kubectl describe -n %s %s", job.Namespace, job.Title())
	case job.Kind == "Job":
		return fmt.Sprintf("muster kubectl logs -n %s %s --all-pods --prefix", job.Namespace, job.Title())
	}
	return fmt.Sprintf("muster kubectl logs -n %s -l %s=%s --prefix", job.Namespace, job.PodLabel(), job.Name)
}

// nextOfWaiting returns the command that helps a job whose queue is mistaken, or for which the engine knows what is
// missing or which job it waits for; "" for any other.
func nextOfWaiting(e *view.Explanation) string {
	job, x := &e.Job, e.WhyNot
	switch {
	case len(e.Checks) > 0:
		return ""
	case x != nil && len(x.Unready) > 0:
		return "muster explain " + e.Title(x.Unready[0])
	case job.State == view.Pending && job.PodLabel() != "" && nearestQueue(e) != "":
		return fmt.Sprintf("muster kubectl label -n %s %s %s=%s --overwrite", job.Namespace, job.Title(),
			kueue.QueueLabel, nearestQueue(e))
	case x == nil:
		return ""
	case misses(x, "topology "):
		return "muster kubectl get topologies.kueue.x-k8s.io"
	case misses(x, "flavor "):
		return "muster kubectl get resourceflavors"
	case x.Behind != nil:
		return "muster explain " + e.Title(*x.Behind)
	case x.Delays != nil:
		return "muster explain " + e.Title(x.Delays.Name)
	case x.Code == reason.ExceedsNodes:
		return "muster kubectl get nodes"
	case reason.IsRefusedAdmission(x.Message) && job.PodLabel() != "":
		return fmt.Sprintf("muster kubectl describe -n %s %s", job.Namespace, job.Title()) // its events say who refuses it
	case x.Code == reason.PendingEvaluation && e.Warning != nil && job.PodLabel() != "":
		return fmt.Sprintf("muster kubectl describe -n %s %s", job.Namespace, job.Title()) // why it was evicted
	case x.Code == reason.WaitingForQuota && len(x.Holders) > 0:
		return "muster explain " + e.Title(x.Holders[0].Name)
	}
	return ""
}

// nearestQueue returns the queue that the job probably means, if there is none of the name that it names: the one whose
// name differs least, or the only one. It is "" if none is near.
func nearestQueue(e *view.Explanation) string {
	if e.Line != nil || slices.Contains(e.QueuesThere, e.Job.Queue) {
		return ""
	}
	if len(e.QueuesThere) == 1 {
		return e.QueuesThere[0]
	}
	nearest, least := "", max(2, len(e.Job.Queue)/4)+1
	for _, name := range e.QueuesThere {
		if d := distance(e.Job.Queue, name); d < least {
			nearest, least = name, d
		}
	}
	return nearest
}

// distance returns how many characters must be added, removed or replaced to turn the name a into the name b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// misses reports whether each flavor of the queue refuses the job, and one of them since an object does not exist,
// whose name follows these words.
func misses(x *reason.Explanation, of string) (missing bool) {
	for i := range x.PodSets {
		for _, flavor := range x.PodSets[i].Flavors {
			if flavor.Fit != reason.Refused {
				return false
			}
			missing = missing || strings.HasPrefix(flavor.Message, of) && strings.HasSuffix(flavor.Message, " not found")
		}
	}
	return missing
}
