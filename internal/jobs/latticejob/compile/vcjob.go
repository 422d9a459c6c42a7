package compile

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	batch "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	bus "github.com/musterhq/muster/api/volcano/bus/v1alpha1"
)

// vcjob compiles the VCJob, with tasks in order of name and without templates.
func (c *compiler) vcjob() (*batch.Job, error) {
	spec := &c.job.Spec
	out := &batch.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: batch.GroupVersion.String(), Kind: "Job"},
		ObjectMeta: c.meta(c.job.Name, c.job.Name),
		Spec: batch.JobSpec{
			SchedulerName:     cmp.Or(spec.SchedulerName, lattice.DefaultScheduler),
			Queue:             spec.Queue,
			PriorityClassName: spec.PriorityClassName,
			MaxRetry:          ptr.Deref(spec.MaxRetry, 0),
			Policies:          policies(spec.Policies),
			NetworkTopology:   topology(spec.Topology),
		},
	}
	if len(out.Spec.Policies) == 0 {
		out.Spec.Policies = []batch.LifecyclePolicy{{Event: bus.PodEvictedEvent, Action: bus.RestartJobAction}}
		if out.Spec.MaxRetry > 0 {
			out.Spec.Policies = append(out.Spec.Policies,
				batch.LifecyclePolicy{Event: bus.PodFailedEvent, Action: bus.RestartJobAction})
		}
	}
	if c.training != nil {
		out.Spec.Plugins = trainingPlugins()
	}
	var all int32
	for name, task := range inOrder(c.tasks) {
		n := replicas(&task)
		if last := fmt.Sprintf("%s-%s-%d", c.job.Name, name, max(n-1, 0)); len(last) > maxPodName {
			return nil, fmt.Errorf("the name of pod %s would exceed %d characters: give the job or task '%s' a shorter name",
				last, maxPodName, name)
		}
		all += n
		out.Spec.Tasks = append(out.Spec.Tasks, batch.TaskSpec{Name: name, Replicas: n, Policies: policies(task.Policies)})
	}
	out.Spec.MinAvailable = ptr.Deref(spec.MinAvailable, all)
	if out.Spec.MinAvailable > all {
		return nil, fmt.Errorf("minAvailable is %d, but the tasks have %d pods together", out.Spec.MinAvailable, all)
	}
	return out, nil
}

// policies converts the policies of a job or a task.
func policies(given []lattice.JobPolicy) (out []batch.LifecyclePolicy) {
	for _, p := range given {
		event := bus.Event(p.Event)
		if p.Event == lattice.OnAny {
			event = bus.AnyEvent
		}
		out = append(out, batch.LifecyclePolicy{Event: event, Action: bus.Action(p.Action), Timeout: p.Timeout})
	}
	return out
}

// topology converts the network topology.
func topology(given *lattice.NetworkTopology) *batch.NetworkTopologySpec {
	if given == nil {
		return nil
	}
	out := &batch.NetworkTopologySpec{Mode: batch.SoftNetworkTopologyMode, HighestTierAllowed: given.MaxTier}
	if given.Mode == lattice.HardTopology {
		out.Mode = batch.HardNetworkTopologyMode
	}
	return out
}

// restartPolicy returns the restart policy of the task's pods.
func restartPolicy(p lattice.RestartPolicy) corev1.RestartPolicy {
	return corev1.RestartPolicy(cmp.Or(p, lattice.RestartNever))
}
