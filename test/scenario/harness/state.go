package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// State returns what helps to explain a failed wait: the awaited objects, the Workloads, the pods and the last events.
func (w *World) State(awaited ...client.ObjectList) string {
	var out strings.Builder
	for _, list := range awaited {
		writeStatuses(&out, list)
	}
	var workloads kueue.WorkloadList
	var pods corev1.PodList
	for _, list := range []client.ObjectList{&workloads, &pods} {
		if err := w.Client.List(context.Background(), list, client.InNamespace(w.Namespace)); err != nil {
			fmt.Fprintf(&out, "\n%v", err)
		}
	}
	for i := range workloads.Items {
		writeWorkload(&out, &workloads.Items[i])
	}
	for i := range pods.Items {
		writePod(&out, &pods.Items[i])
		w.writeLogs(&out, &pods.Items[i])
	}
	w.writeEvents(&out)
	return out.String()
}

// writeEvents writes the last events of the namespace, the newest last.
func (w *World) writeEvents(out *strings.Builder) {
	const limit = 30
	var events corev1.EventList
	if err := w.Client.List(context.Background(), &events, client.InNamespace(w.Namespace)); err != nil {
		fmt.Fprintf(out, "\n%v", err)
		return
	}
	slices.SortStableFunc(events.Items,
		func(a, b corev1.Event) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	for _, event := range events.Items[max(0, len(events.Items)-limit):] {
		fmt.Fprintf(out, "\nEvent %s of %s %s: %s", event.Reason, event.InvolvedObject.Kind,
			event.InvolvedObject.Name, event.Message)
	}
}

// writeStatuses writes the status of each object of a list, except for kinds that State prints in another form.
func writeStatuses(out *strings.Builder, list client.ObjectList) {
	switch list.(type) {
	case *kueue.WorkloadList, *corev1.PodList:
		return
	}
	err := meta.EachListItem(list, func(o runtime.Object) error {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return err
		}
		status, err := json.Marshal(fields["status"])
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "\n%T %s: %s", o, o.(client.Object).GetName(), status)
		return err
	})
	if err != nil {
		fmt.Fprintf(out, "\n%v", err)
	}
}

func writeWorkload(out *strings.Builder, wl *kueue.Workload) {
	fmt.Fprintf(out, "\nWorkload %s on %v, deleted %v", wl.Name, PlacesOf(wl), wl.DeletionTimestamp)
	for _, c := range wl.Status.Conditions {
		fmt.Fprintf(out, "\n  %s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message)
	}
	for _, check := range wl.Status.AdmissionChecks {
		fmt.Fprintf(out, "\n  check %s is %s: %s", check.Name, check.State, check.Message)
	}
}

func writePod(out *strings.Builder, pod *corev1.Pod) {
	fmt.Fprintf(out, "\nPod %s on %q %s, deleted %v, selects %v, gates %v, annotations %v", pod.Name, pod.Spec.NodeName,
		pod.Status.Phase, pod.DeletionTimestamp, pod.Spec.NodeSelector, pod.Spec.SchedulingGates, pod.Annotations)
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status != corev1.ConditionTrue {
			fmt.Fprintf(out, ", %s %s", c.Reason, c.Message)
		}
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		fmt.Fprintf(out, "\n  container %s, restarted %d times, ready %t:", c.Name, c.RestartCount, c.Ready)
		switch {
		case c.State.Waiting != nil:
			fmt.Fprintf(out, " waits: %s %s", c.State.Waiting.Reason, c.State.Waiting.Message)
		case c.State.Terminated != nil:
			fmt.Fprintf(out, " ended with %d: %s %s", c.State.Terminated.ExitCode, c.State.Terminated.Reason,
				c.State.Terminated.Message)
		default:
			fmt.Fprint(out, " runs")
		}
	}
}

// writeLogs writes the last log lines of the pod's running containers that are not ready: their logs may say why.
func (w *World) writeLogs(out *strings.Builder, pod *corev1.Pod) {
	const lines = 5
	clients, err := kubernetes.NewForConfig(w.Cluster.Config)
	if err != nil {
		fmt.Fprintf(out, "\n%v", err)
		return
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if c.State.Running == nil || c.Ready {
			continue
		}
		text, err := clients.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name,
			&corev1.PodLogOptions{Container: c.Name, TailLines: ptr.To[int64](lines)}).DoRaw(context.Background())
		if err != nil {
			fmt.Fprintf(out, "\n  log of %s: %v", c.Name, err)
			continue
		}
		fmt.Fprintf(out, "\n  log of %s: %s", c.Name, strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "\n    "))
	}
}

// PlacesOf returns how many pods the Workload has placed on each node.
func PlacesOf(wl *kueue.Workload) map[string]int32 {
	out := map[string]int32{}
	if wl.Status.Admission == nil {
		return out
	}
	for _, a := range wl.Status.Admission.PodSetAssignments {
		if a.TopologyAssignment == nil {
			continue
		}
		for _, domain := range a.TopologyAssignment.Domains {
			out[domain.Values[len(domain.Values)-1]] += domain.Count
		}
	}
	return out
}
