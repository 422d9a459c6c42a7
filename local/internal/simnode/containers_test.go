package simnode

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func TestAContainerRestartsAsUnderAKubelet(t *testing.T) {
	const s = time.Second
	onFailure := restarting(corev1.RestartPolicyOnFailure)
	always := restarting(corev1.RestartPolicyAlways)
	tests := map[string]struct {
		pod    *corev1.Pod
		after  []time.Duration
		change func(*corev1.Pod)
		want   string
	}{
		"OnFailure: a container that succeeded has completed": {
			pod: podWith(onFailure), after: []time.Duration{0, 5 * s},
			want: "write Succeeded; main exited 0 Completed after 5s",
		},
		"OnFailure: the first restart is immediate": {
			pod: podWith(onFailure, exiting("1")), after: []time.Duration{0, 5 * s},
			want: "write Running ready; main running, restarts: 1; again in 5s",
		},
		"the second restart waits ten seconds": {
			pod: podWith(onFailure, exiting("1")), after: []time.Duration{0, 5 * s, 10 * s},
			want: "write Running; main waiting CrashLoopBackOff, restarts: 1; again in 10s",
		},
		"a container in back-off is not changed before its time": {
			pod: podWith(onFailure, exiting("1")), after: []time.Duration{0, 5 * s, 10 * s, 12 * s},
			want: "nothing Running; main waiting CrashLoopBackOff, restarts: 1; again in 7.3s",
		},
		"a container runs again after its back-off": {
			pod: podWith(onFailure, exiting("1")), after: []time.Duration{0, 5 * s, 10 * s, 20 * s},
			want: "write Running ready; main running, restarts: 2; again in 5s",
		},
		"Always: restart after success": {
			pod: podWith(always), after: []time.Duration{0, 5 * s},
			want: "write Running ready; main running, restarts: 1; again in 5s",
		},
		"a container of zero duration is in back-off": {
			pod: podWith(always, lasting("0s")), after: []time.Duration{0},
			want: "write Running; main waiting CrashLoopBackOff, restarts: 1; again in 10s",
		},
		"a container that ran long is restarted at once each time": {
			pod: podWith(always, lasting("1h")), after: []time.Duration{0, time.Hour, 2 * time.Hour, 3 * time.Hour},
			want: "write Running ready; main running, restarts: 3; again in 1h0m0s",
		},
		"a pod deleted during back-off fails like its last run": {
			pod: podWith(onFailure, exiting("7")), after: []time.Duration{0, 5 * s, 10 * s, 12 * s}, change: deleted,
			want: "write Failed; main exited 7 Error after 5s, restarts: 1",
		},
		"a pod deleted during back-off after success succeeds": {
			pod: podWith(always), after: []time.Duration{0, 5 * s, 10 * s, 12 * s}, change: deleted,
			want: "write Succeeded; main exited 0 Completed after 5s, restarts: 1",
		},
		"a restart policy of the container": {
			pod: podWith(exiting("1"), container(corev1.Container{
				Name: "other", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyOnFailure),
			})),
			after: []time.Duration{0, 5 * s},
			want:  "write Running; main exited 1 Error after 5s; other running, restarts: 1; again in 5s",
		},
		"a restart rule for an exit code": {
			pod: podWith(exiting("42"), func(p *corev1.Pod) {
				p.Spec.Containers[0].RestartPolicy = ptr.To(corev1.ContainerRestartPolicyNever)
				p.Spec.Containers[0].RestartPolicyRules = []corev1.ContainerRestartRule{{
					Action: corev1.ContainerRestartRuleActionRestart,
					ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{
						Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42},
					},
				}}
			}),
			after: []time.Duration{0, 5 * s},
			want:  "write Running ready; main running, restarts: 1; again in 5s",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { check(t, test.pod, test.after, test.change, test.want) })
	}
}

func TestBackOffDoublesUpToFiveMinutes(t *testing.T) {
	var got []time.Duration
	for restarts := range int32(9) {
		got = append(got, backOff(restarts, time.Second))
	}
	const s = time.Second
	want := []time.Duration{0, 10 * s, 20 * s, 40 * s, 80 * s, 160 * s, 300 * s, 300 * s, 300 * s}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("back-off by number of earlier restarts (-want +got):\n%s", diff)
	}
}
