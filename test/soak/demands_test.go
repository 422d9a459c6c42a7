package soak

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/workload"
)

// complaint says what is wrong about a job or a queue.
type complaint struct{ about, text string }

func (c complaint) String() string { return c.about + ": " + c.text }

// unmet returns what a world that has settled must not be like.
func (r *round) unmet() (out []complaint) {
	workloads, pods := r.list(&kueue.WorkloadList{}).(*kueue.WorkloadList).Items,
		r.list(&corev1.PodList{}).(*corev1.PodList).Items
	out = append(out, r.quotaComplaints(workloads)...)
	done := r.donePods()
	for i := range workloads {
		if state := workloads[i].Status.RequeueState; state != nil && state.RequeueAt != nil &&
			time.Now().Before(state.RequeueAt.Time) {
			out = append(out, complaint{jobOf(&workloads[i]), "backs off until " + state.RequeueAt.Format(clockFormat)})
		}
		if r.placed { // without places, pods may wait for nodes that others have in pieces
			out = append(out, gangComplaints(&workloads[i], pods, done[jobOf(&workloads[i])])...)
		}
		out = append(out, togetherComplaints(&workloads[i])...)
	}
	out = append(out, r.strandedPods(pods)...)
	out = append(out, r.taskComplaints(workloads, pods)...)
	out = append(out, r.wholeComplaints(workloads)...)
	return append(out, r.jobComplaints()...)
}

// strandedPods: no pod is on a node that is gone. Kubernetes needs a minute to delete the pods that have ended there.
func (r *round) strandedPods(pods []corev1.Pod) (out []complaint) {
	for i := range pods {
		if slices.ContainsFunc(r.nodes, func(n *node) bool { return n.state == gone && n.name == pods[i].Spec.NodeName }) {
			out = append(out, complaint{jobOf(&pods[i]), "pod " + pods[i].Name + " is still there, and its node is gone"})
		}
	}
	return out
}

// quotaComplaints: each queue accounts for what its Workloads hold, and no queue, nor all together, hold more than
// there is.
func (r *round) quotaComplaints(workloads []kueue.Workload) (out []complaint) {
	held := heldBy(workloads)
	total, available := map[amount]int64{}, map[amount]int64{}
	for _, is := range r.list(&kueue.ClusterQueueList{}).(*kueue.ClusterQueueList).Items {
		if !slices.ContainsFunc(r.queues, func(q *queue) bool { return q.Name == is.Name }) {
			continue
		}
		if meta.IsStatusConditionTrue(is.Status.Conditions, muster.QuotaDiffersCondition) {
			out = append(out, complaint{is.Name, "has the condition " + muster.QuotaDiffersCondition})
		}
		for i, flavor := range is.Spec.ResourceGroups[0].Flavors {
			for k, quota := range flavor.Resources {
				of := amount{flavor: string(flavor.Name), resource: quota.Name}
				available[of] += quota.NominalQuota.Value()
				sum := held[amount{is.Name, of.flavor, of.resource}]
				total[of] += sum
				if said := is.Status.FlavorsReservation[i].Resources[k].Total; said.Value() != sum {
					out = append(out, complaint{is.Name,
						fmt.Sprintf("says that %s %s of flavor %s are reserved, and its Workloads hold %d", said.String(), quota.Name,
							flavor.Name, sum)})
				}
				if quota.BorrowingLimit != nil && sum > quota.NominalQuota.Value()+quota.BorrowingLimit.Value() {
					out = append(out, complaint{is.Name,
						fmt.Sprintf("holds %d %s of flavor %s, more than its quota and borrowing limit", sum, quota.Name, flavor.Name)})
				}
			}
		}
	}
	for of, sum := range total {
		if sum > available[of] {
			out = append(out, complaint{r.Namespace,
				fmt.Sprintf("all queues hold %d %s of flavor %s, and have %d", sum, of.resource, of.flavor, available[of])})
		}
	}
	return out
}

// amount identifies what is held of a queue's quota.
type amount struct {
	queue, flavor string
	resource      corev1.ResourceName
}

// heldBy returns what the Workloads hold.
func heldBy(workloads []kueue.Workload) map[amount]int64 {
	held := map[amount]int64{}
	for i := range workloads {
		o := &workloads[i]
		if o.Status.Admission == nil || meta.IsStatusConditionTrue(o.Status.Conditions, kueue.WorkloadFinished) {
			continue
		}
		for _, a := range o.Status.Admission.PodSetAssignments {
			left, given := workload.PodsHoldingQuota(o, &a)
			for resource, usage := range a.ResourceUsage {
				held[amount{string(o.Status.Admission.ClusterQueue), string(a.Flavors[resource]),
					resource}] += usage.Value() * int64(left) / int64(max(1, given))
			}
		}
	}
	return held
}

// gangComplaints: a Workload that holds quota has all its pods, and they run; one that holds none has none.
// done is how many pods of a JobSet or VCJob have succeeded, those that were deleted since included.
func gangComplaints(o *kueue.Workload, pods []corev1.Pod, done int32) (out []complaint) {
	name := jobOf(o)
	var want, run int32
	ended := done
	if o.Status.Admission != nil && !meta.IsStatusConditionTrue(o.Status.Conditions, kueue.WorkloadFinished) {
		for _, a := range o.Status.Admission.PodSetAssignments {
			left, _ := workload.PodsHoldingQuota(o, &a)
			want += left
		}
	}
	for i := range pods {
		pod := &pods[i]
		switch {
		case jobOf(pod) != name:
		case pod.Status.Phase == corev1.PodSucceeded: // counted already
		case pod.Status.Phase == corev1.PodFailed:
			ended++
		case pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil:
			run++
		default:
			out = append(out, complaint{name, "pod " + pod.Name + " is " + summary(pod)})
		}
	}
	switch metav1.GetControllerOf(o).APIVersion {
	case volcano.GroupVersion.String(), jobset.GroupVersion.String():
		// ended pods keep their quota: a failure may restart them
	default:
		ended = 0
	}
	if run > want || run+ended < want {
		out = append(out, complaint{name,
			fmt.Sprintf("%d pods run, and its Workload %s holds quota for %d", run, o.Name, want)})
	}
	return out
}

// donePods returns how many pods of each JobSet and VCJob have succeeded, according to these and their Jobs.
func (r *round) donePods() map[string]int32 {
	out := map[string]int32{}
	for _, job := range r.list(&batchv1.JobList{}).(*batchv1.JobList).Items {
		out[jobOf(&job)] += job.Status.Succeeded
	}
	for _, job := range r.list(&volcano.JobList{}).(*volcano.JobList).Items {
		out[job.Name] += job.Status.Succeeded
	}
	return out
}

// listed is what `muster jobs` and `muster explain` say of a job.
type listed struct {
	Kind, Name, State, Reason, Message, Workload string
}

type explained struct {
	Job         listed
	PodProblems []any
	WhyNot      *struct {
		State, Code, Message string
		Position             int
	}
}

func (l listed) title() string { return strings.ToLower(l.Kind) + "/" + l.Name }

// jobComplaints: each job has ended, runs, is paused, or waits for a reason, which is what `muster explain` says too.
func (r *round) jobComplaints() (out []complaint) {
	var all struct{ Items []listed }
	r.muster(&all, "jobs")
	for _, job := range all.Items {
		switch job.State {
		case "Completed", "Failed", "Running", "Suspended":
		case "Starting":
			var now explained
			if r.muster(&now, "explain", job.title()); r.placed || len(now.PodProblems) == 0 {
				out = append(out, complaint{job.Name, "does not start: " + job.Message})
			}
		case "Pending":
			out = append(out, r.waitComplaints(job)...)
		default:
			out = append(out, complaint{job.Name, fmt.Sprintf("is %s: %s %s", job.State, job.Reason, job.Message)})
		}
	}
	return out
}

func (r *round) waitComplaints(job listed) (out []complaint) {
	if job.Reason == "" || job.Message == "" {
		out = append(out, complaint{job.Name, "waits without a reason"})
	}
	var now explained
	code := r.muster(&now, "explain", job.title())
	switch {
	case now.Job.State != job.State: // it has changed meanwhile
	case code != 1:
		out = append(out, complaint{job.Name, fmt.Sprintf("waits, and explain exits with %d", code)})
	case now.WhyNot == nil:
		out = append(out, complaint{job.Name,
			fmt.Sprintf("waits for %s (%s), and explain does not say why: it would be admitted", job.Reason, job.Message)})
	case now.WhyNot.Code != job.Reason && !(ofCapacity(now.WhyNot.Code) && ofCapacity(job.Reason)):
		out = append(out, complaint{job.Name, fmt.Sprintf("waits for %s (%s), and explain says %s (%s)", job.Reason,
			job.Message, now.WhyNot.Code, now.WhyNot.Message)})
	case now.WhyNot.Position == 1 &&
		(strings.Contains(job.Message, "waits behind the head") || strings.Contains(job.Message, "an earlier workload")):
		out = append(out, complaint{job.Name, fmt.Sprintf("is the first in its queue, and says %q", job.Message)})
	}
	return out
}

// ofCapacity reports whether a job with this reason waits for quota or nodes. If it lacks both, the reason is what it
// lacked first when it was evaluated, and it is evaluated again when there is more.
func ofCapacity(code string) bool {
	return code == string(reason.WaitingForQuota) || code == string(reason.TopologyPlacementFailed) ||
		code == string(reason.ExceedsNodes)
}

// muster reads the JSON of a command about the namespace, and returns its exit code.
func (r *round) muster(into any, arguments ...string) int {
	r.Helper()
	command := exec.CommandContext(r.Context(), "../../bin/muster",
		append(arguments, "-n", r.Namespace, "-o", "json", "--kubeconfig", r.Cluster.Kubeconfig)...)
	var said strings.Builder
	command.Stderr = &said
	text, err := command.Output()
	if err := json.Unmarshal(text, into); err != nil {
		r.Fatalf("muster %v: %v %s\n%s", arguments, err, said.String(), text)
	}
	if err != nil && command.ProcessState == nil {
		r.Fatalf("muster %v: %v", arguments, err)
	}
	return command.ProcessState.ExitCode()
}

// explanation is what `muster explain` says of a job, after the test has ended.
func (r *round) explanation(name string, flags ...string) string {
	arguments := append([]string{"explain", name, "-n", r.Namespace, "--kubeconfig", r.Cluster.Kubeconfig}, flags...)
	text, _ := exec.CommandContext(context.Background(), "../../bin/muster", arguments...).CombinedOutput()
	return string(text) // an exit code says that it waits
}

// leftOver: nothing is left of deleted jobs.
func (r *round) leftOver() (out []complaint) {
	for _, o := range r.list(&kueue.WorkloadList{}).(*kueue.WorkloadList).Items {
		out = append(out, complaint{jobOf(&o), "Workload " + o.Name + " is left: " + summary(&o)})
	}
	for _, pod := range r.list(&corev1.PodList{}).(*corev1.PodList).Items {
		out = append(out, complaint{jobOf(&pod), "pod " + pod.Name + " is left: " + summary(&pod)})
	}
	var all struct{ Items []listed }
	r.muster(&all, "jobs")
	for _, job := range all.Items {
		out = append(out, complaint{job.Name, "is left: " + job.State})
	}
	return append(out, r.quotaComplaints(nil)...)
}
