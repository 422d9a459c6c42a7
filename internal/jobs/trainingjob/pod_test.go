package trainingjob

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/jobstest"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/podspec"
)

func TestNamesAndLabelsOfAPod(t *testing.T) {
	job := newJob(1, 1)
	job.Spec.Dataset = "imagenet"
	job.Spec.ReplicaSpecs.Template.Labels = map[string]string{"app": "x", "training.kubeflow.org/job-name": "not this"}
	grant := admitted(1)
	grant.PodSets[worker] = jobs.PodSetAdmission{Count: 1,
		Injection: podspec.Injection{NodeSelector: map[string]string{"pool": "a"}}}
	var got *corev1.Pod
	var service *corev1.Service
	p := checkedPlan(t, now, job.TrainingJob, grant, nil)
	for _, w := range slices.Concat(p.First, p.Writes) {
		switch o := w.Object().(type) {
		case *corev1.Pod:
			got = o
		case *corev1.Service:
			service = o
		}
	}
	ours := map[string]string{"training.kubeflow.org/operator-name": "trainingjob-controller",
		"training.kubeflow.org/job-name":     "job",
		"training.kubeflow.org/replica-type": "worker", "training.kubeflow.org/replica-index": "0"}
	labels := map[string]string{"app": "x", muster.JobUIDLabel: "job-uid"}
	for key, value := range ours {
		labels[key] = value
	}
	same(t, "labels", labels, got.Labels)
	same(t, "node selector", map[string]string{"pool": "a"}, got.Spec.NodeSelector)
	same(t, "owner", []metav1.OwnerReference{*metav1.NewControllerRef(job.TrainingJob, settings.kind())},
		got.OwnerReferences)
	same(t, "mounts", []corev1.VolumeMount{{Name: "muster-dataset", MountPath: "/datasets/imagenet", ReadOnly: true}},
		got.Spec.Containers[1].VolumeMounts)
	same(t, "mounts of the other container", nil, got.Spec.Containers[0].VolumeMounts)
	same(t, "selector of the Service", ours, service.Spec.Selector)
	if service.Spec.ClusterIP != "None" || !service.Spec.PublishNotReadyAddresses || service.Spec.Ports[0].Port != 23456 {
		t.Errorf("spec of the Service = %+v, want it headless with the port 23456 and addresses of pods that are not ready", service.Spec)
	}
}

func TestRestartPolicyOfPods(t *testing.T) {
	for policy, want := range map[breezeml.RestartPolicy]corev1.RestartPolicy{
		"": "Never", breezeml.RestartNever: "Never", breezeml.RestartExitCode: "Never",
		breezeml.RestartOnFailure: "OnFailure", breezeml.RestartAlways: "Always",
	} {
		job := newJob(1, 1).restarts(policy)
		job.Spec.ReplicaSpecs.Template.Spec.RestartPolicy = corev1.RestartPolicyAlways
		p := checkedPlan(t, now, job.TrainingJob, admitted(1), nil)
		if got := podsIn(p)[0].Spec.RestartPolicy; got != want {
			t.Errorf("restartPolicy %q: that of the pods is %s, want %s", policy, got, want)
		}
		if reported := len(p.Events) == 1 &&
			p.Events[0].Reason == breezeml.TemplateRestartPolicyReason; reported != (want != "Always") {
			t.Errorf("restartPolicy %q: events %v, want that the template's is ignored: %v", policy, events(p), want != "Always")
		}
		job.Spec.InjectLattice = true
		withAgent := want
		if want == "Always" {
			withAgent = "OnFailure"
		}
		p = planWithAgent(t, job.TrainingJob, admitted(1))
		if got := podsIn(p)[0].Spec.RestartPolicy; got != withAgent {
			t.Errorf("restartPolicy %q with the agent: that of the pods is %s, want %s", policy, got, withAgent)
		}
		said := slices.ContainsFunc(p.Events,
			func(e write.Event) bool { return e.Reason == breezeml.RestartPolicyReplacedReason })
		if said != (withAgent != want) {
			t.Errorf("restartPolicy %q with the agent: events %v, want that another is used said: %v", policy, events(p),
				withAgent != want)
		}
	}
}

// TestWorkersGetFreePlaces: pods select the nodes of places that no other pod uses. If there are none, they are gated.
func TestWorkersGetFreePlaces(t *testing.T) {
	at := func(node string, count int32) podspec.Place {
		return podspec.Place{Domain: map[string]string{corev1.LabelHostname: node}, Count: count}
	}
	grant := jobs.Admission{Grant: jobs.Admitted,
		PodSets: map[string]jobs.PodSetAdmission{worker: {Count: 4, Places: podspec.Places{at("a", 2), at("b", 2)}}}}
	on := func(index int, node string) jobstest.Pod {
		b := pod(index).Running()
		b.Spec.NodeName, b.Spec.NodeSelector = node, map[string]string{corev1.LabelHostname: node}
		return b
	}
	job := newJob(1, 4)
	places := func(pods ...jobstest.Pod) map[string]string {
		got := map[string]string{}
		for _, w := range checkedPlan(t, now, job.TrainingJob, grant, of(pods...)).Writes {
			if p, ok := w.Object().(*corev1.Pod); ok && w.Verb() == "create" {
				got[p.Name] = p.Spec.NodeSelector[corev1.LabelHostname] + strings.Repeat("gated", len(p.Spec.SchedulingGates))
			}
		}
		return got
	}
	same(t, "places", map[string]string{"job-worker-0": "a", "job-worker-2": "b"}, places(on(1, "b"), on(3, "a")))
	surplus := on(5, "b").Terminating() // it still uses a place after a shrink
	surplus.Labels = map[string]string{kueue.PodSetLabel: worker}
	same(t, "places beside a terminating pod", map[string]string{"job-worker-0": "a", "job-worker-2": "gated"},
		places(on(1, "b"), on(3, "a"), surplus))
}

// TestPodsAreCreatedAsAdmitted: changes of the template, the dataset and the restart policy take effect at the next
// start.
func TestPodsAreCreatedAsAdmitted(t *testing.T) {
	job := newJob(1, 2)
	job.Spec.ReplicaSpecs.Template.Annotations = map[string]string{"mine": "1"}
	template := describe(job.TrainingJob, jobs.Facts{}).PodSets[0].Template
	grant := admitted(2)
	grant.PodSets[worker] = jobs.PodSetAdmission{Count: 2, Template: &template}
	job = withStatus(checkedPlan(t, now, job.TrainingJob, grant, nil), job)
	job.Spec.ReplicaSpecs.Template.Spec.Containers[1].Resources.Requests =
		corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}
	job.Spec.Dataset = "another"
	job = job.restarts(breezeml.RestartAlways)
	pods := podsIn(checkedPlan(t, now, job.TrainingJob, grant, of(pod(0).Running())))
	if len(pods) != 1 || len(pods[0].Spec.Containers[1].Resources.Requests) > 0 || len(pods[0].Spec.Volumes) > 0 ||
		pods[0].Spec.RestartPolicy != corev1.RestartPolicyNever {
		t.Fatalf("pods = %+v, want one with the former template, dataset and restart policy", pods)
	}
	same(t, "annotations", map[string]string{"mine": "1", muster.RestartsAnnotation: "0"}, pods[0].Annotations)
	job = newJob(1, 2)
	job.Spec.Dataset = "another"
	if pods := podsIn(checkedPlan(t, now, job.TrainingJob, admitted(1), nil)); len(pods[0].Spec.Volumes) != 1 {
		t.Error("the dataset is not mounted at the next start")
	}
}
