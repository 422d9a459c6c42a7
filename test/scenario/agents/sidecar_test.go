package agents

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/test/scenario/harness"
)

// TestAJobSetRestartsInPlaceByASidecar: the agent is a sidecar of the user's own manifest, as the public API has it. A command
// fails; the kubelet restarts all containers of its pod, the barrier falls, and all others restart theirs: in the same pods,
// which run on together in the next attempt.
func TestAJobSetRestartsInPlaceByASidecar(t *testing.T) {
	w := newWorld(t)
	js := w.agents(3, `echo "$JOB_COMPLETION_INDEX" >> $FOLDER/runs
		[ -e $FOLDER/failed ] && { while [ ! -e $FOLDER/end ]; do sleep 0.02; done; exit 0; }
		[ $JOB_COMPLETION_INDEX = 1 ] && { while [ ! -e $FOLDER/fail ]; do sleep 0.02; done; touch $FOLDER/failed; exit 3; }
		sleep 1000`)
	delete(js.Annotations, "muster.dev/inject-agent")
	js.Spec.FailurePolicy = &jobset.FailurePolicy{MaxRestarts: 1, RestartStrategy: jobset.InPlaceRestart}
	w.addSidecar(&js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec)
	w.Create(js)
	first := w.said("runs", 3)
	pods := w.pods()
	w.write("fail")
	runs := w.said("runs", 6)
	w.untilJobSet("is in its second attempt", func(js *jobset.JobSet) bool {
		return ptr.Deref(js.Status.CurrentInPlaceRestartAttempt, 0) == 1 && ptr.Deref(js.Status.PreviousInPlaceRestartAttempt, -1) == 0
	})
	w.write("end")
	done := w.untilJobSet("has completed", is(jobset.JobSetCompleted))

	for attempt, indices := range [][]string{first[:3], runs[3:]} {
		slices.Sort(indices)
		if !slices.Equal(indices, []string{"0", "1", "2"}) {
			t.Errorf("in attempt %d ran %q, in all %q", attempt, indices, runs)
		}
	}
	if done.Status.Restarts != 0 {
		t.Errorf("%d restarts of Jobs", done.Status.Restarts)
	}
	for uid, pod := range w.pods() {
		if _, same := pods[uid]; !same || pod.Status.ContainerStatuses[0].RestartCount != 1 {
			t.Errorf("%s: made anew: %v; its container was restarted %d times", pod.Name, !same, pod.Status.ContainerStatuses[0].RestartCount)
		}
	}
}

// addSidecar puts the agent beside the containers of a pod, as docs/agent.md says it.
func (w *world) addSidecar(pod *corev1.PodSpec) {
	w.Helper()
	address, err := os.ReadFile(filepath.Join(w.Cluster.Dir, "rendezvous"))
	if err != nil {
		w.Fatal(err)
	}
	system := *w.World
	system.Namespace = "muster-system"
	secret := harness.UntilOne(&system, &corev1.SecretList{}, "muster-rendezvous", "is there", func(secret *corev1.Secret) bool { return len(secret.Data) > 0 })
	restart := func(operator corev1.ContainerRestartRuleOnExitCodesOperator, code int32) []corev1.ContainerRestartRule {
		return []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestartAllContainers,
			ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: operator, Values: []int32{code}}}}
	}
	pod.InitContainers = append(pod.InitContainers, corev1.Container{
		Name: "agent", Image: "muster-operator", Command: []string{"muster-agent", "sidecar"},
		RestartPolicy:      ptr.To(corev1.ContainerRestartPolicyAlways),
		RestartPolicyRules: restart(corev1.ContainerRestartRuleOnExitCodesOpIn, 42),
		Env: []corev1.EnvVar{
			{Name: "MUSTER_RENDEZVOUS", Value: strings.TrimSpace(string(address))},
			{Name: "MUSTER_RENDEZVOUS_CA", Value: string(secret.Data[corev1.TLSCertKey]) + string(secret.Data["next.crt"])},
			{Name: "MUSTER_READY_FILE", Value: "/var/run/barrier/lifted"},
		},
		StartupProbe: &corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: 30, FailureThreshold: 3600, // a busy machine takes a second to start it
			ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"muster-agent", "ready"}}}},
		VolumeMounts: []corev1.VolumeMount{
			{Name: "barrier", MountPath: "/var/run/barrier"},
			{Name: "rendezvous", MountPath: "/var/run/secrets/muster.dev", ReadOnly: true},
		},
	})
	main := &pod.Containers[0]
	main.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyNever)
	main.RestartPolicyRules = restart(corev1.ContainerRestartRuleOnExitCodesOpNotIn, 0)
	pod.Volumes = append(pod.Volumes,
		corev1.Volume{Name: "barrier", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		corev1.Volume{Name: "rendezvous", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{
			ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: "rendezvous.muster.dev", Path: "token"}}}}}})
}
