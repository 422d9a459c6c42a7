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

// TestAJobSetRestartsInPlaceByASidecar: the agent is a sidecar in the user's manifest, as the JobSet API describes.
// When the command of one pod fails, the kubelet restarts all containers of that pod, its barrier is closed, and the
// other pods restart their containers too. All pods are the same in the next attempt.
func TestAJobSetRestartsInPlaceByASidecar(t *testing.T) {
	w := newWorld(t)
	js := w.agentJobSet(3, `echo "$JOB_COMPLETION_INDEX" >> $FOLDER/runs
		[ -e $FOLDER/failed ] && { while [ ! -e $FOLDER/end ]; do sleep 0.02; done; exit 0; }
		[ $JOB_COMPLETION_INDEX = 1 ] && { while [ ! -e $FOLDER/fail ]; do sleep 0.02; done; touch $FOLDER/failed; exit 3; }
		sleep 1000`)
	delete(js.Annotations, "muster.dev/inject-agent")
	js.Spec.FailurePolicy = &jobset.FailurePolicy{MaxRestarts: 1, RestartStrategy: jobset.InPlaceRestart}
	w.addSidecar(&js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec)
	w.Create(js)
	first := w.untilLines("runs", 3)
	pods := w.podsByUID()
	w.createFile("fail")
	runs := w.untilLines("runs", 6)
	w.untilJobSet("is in its second attempt", func(js *jobset.JobSet) bool {
		return ptr.Deref(js.Status.CurrentInPlaceRestartAttempt, 0) == 1 &&
			ptr.Deref(js.Status.PreviousInPlaceRestartAttempt, -1) == 0
	})
	w.createFile("end")
	done := w.untilJobSet("has completed", hasCondition(jobset.JobSetCompleted))

	for attempt, indices := range [][]string{first[:3], runs[3:]} {
		slices.Sort(indices)
		if !slices.Equal(indices, []string{"0", "1", "2"}) {
			t.Errorf("attempt %d ran the indices %q, want 0 to 2; all attempts: %q", attempt, indices, runs)
		}
	}
	if done.Status.Restarts != 0 {
		t.Errorf("status has %d restarts, want 0", done.Status.Restarts)
	}
	for uid, pod := range w.podsByUID() {
		if _, same := pods[uid]; !same || pod.Status.ContainerStatuses[0].RestartCount != 1 {
			t.Errorf("pod %s: same pod %t, %d container restarts; want true and 1", pod.Name, same,
				pod.Status.ContainerStatuses[0].RestartCount)
		}
	}
}

// addSidecar adds the agent to a pod as a sidecar, as docs/use/agent.md describes.
func (w *world) addSidecar(pod *corev1.PodSpec) {
	w.Helper()
	address, err := os.ReadFile(filepath.Join(w.Cluster.Dir, "rendezvous"))
	if err != nil {
		w.Fatal(err)
	}
	system := *w.World
	system.Namespace = "muster-system"
	secret := harness.UntilOne(&system, &corev1.SecretList{}, "muster-rendezvous", "has data",
		func(secret *corev1.Secret) bool { return len(secret.Data) > 0 })
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
		// starting the probe takes up to a second on a busy machine
		StartupProbe: &corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: 30, FailureThreshold: 3600,
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
		corev1.Volume{Name: "rendezvous",
			VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{
				ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: "rendezvous.muster.dev", Path: "token"}}}}}})
}
