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
	out := report{world: w}
	for _, list := range awaited {
		out.writeStatuses(list)
	}
	var workloads kueue.WorkloadList
	var pods corev1.PodList
	for _, list := range []client.ObjectList{&workloads, &pods} {
		if err := w.Client.List(context.Background(), list, client.InNamespace(w.Namespace)); err != nil {
			out.write("\n%v", err)
		}
	}
	for i := range workloads.Items {
		out.writeWorkload(&workloads.Items[i])
	}
	for i := range pods.Items {
		out.writePod(&pods.Items[i])
		out.writeLogs(&pods.Items[i])
	}
	out.writeEvents()
	return out.text.String()
}

// report is what State writes about a world.
type report struct {
	world *World
	text  strings.Builder
}

// write adds a text, formatted as fmt.Printf does.
func (r *report) write(format string, args ...any) { fmt.Fprintf(&r.text, format, args...) }

// writeEvents writes the last events of the namespace, the newest last.
func (r *report) writeEvents() {
	const limit = 30
	var events corev1.EventList
	if err := r.world.Client.List(context.Background(), &events, client.InNamespace(r.world.Namespace)); err != nil {
		r.write("\n%v", err)
		return
	}
	slices.SortStableFunc(events.Items,
		func(a, b corev1.Event) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	for _, event := range events.Items[max(0, len(events.Items)-limit):] {
		r.write("\nEvent %s of %s %s: %s", event.Reason, event.InvolvedObject.Kind,
			event.InvolvedObject.Name, event.Message)
	}
}

// writeStatuses writes the status of each object of a list, except for kinds that State prints in another form.
func (r *report) writeStatuses(list client.ObjectList) {
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
		r.write("\n%T %s: %s", o, o.(client.Object).GetName(), status)
		return nil
	})
	if err != nil {
		r.write("\n%v", err)
	}
}

// writeWorkload writes where the Workload runs, its conditions and its checks.
func (r *report) writeWorkload(wl *kueue.Workload) {
	r.write("\nWorkload %s on %v, deleted %v", wl.Name, PlacesOf(wl), wl.DeletionTimestamp)
	for _, c := range wl.Status.Conditions {
		r.write("\n  %s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message)
	}
	for _, check := range wl.Status.AdmissionChecks {
		r.write("\n  check %s is %s: %s", check.Name, check.State, check.Message)
	}
}

// writePod writes where the pod runs, and the state of its containers.
func (r *report) writePod(pod *corev1.Pod) {
	r.write("\nPod %s on %q %s, deleted %v, selects %v, gates %v, annotations %v", pod.Name, pod.Spec.NodeName,
		pod.Status.Phase, pod.DeletionTimestamp, pod.Spec.NodeSelector, pod.Spec.SchedulingGates, pod.Annotations)
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status != corev1.ConditionTrue {
			r.write(", %s %s", c.Reason, c.Message)
		}
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		r.write("\n  container %s, restarted %d times, ready %t:", c.Name, c.RestartCount, c.Ready)
		switch {
		case c.State.Waiting != nil:
			r.write(" waits: %s %s", c.State.Waiting.Reason, c.State.Waiting.Message)
		case c.State.Terminated != nil:
			r.write(" ended with %d: %s %s", c.State.Terminated.ExitCode, c.State.Terminated.Reason,
				c.State.Terminated.Message)
		default:
			r.write(" runs")
		}
	}
}

// writeLogs writes the last log lines of the pod's running containers that are not ready: their logs may say why.
func (r *report) writeLogs(pod *corev1.Pod) {
	const lines = 5
	clients, err := kubernetes.NewForConfig(r.world.Cluster.Config)
	if err != nil {
		r.write("\n%v", err)
		return
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if c.State.Running == nil || c.Ready {
			continue
		}
		text, err := clients.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name,
			&corev1.PodLogOptions{Container: c.Name, TailLines: ptr.To[int64](lines)}).DoRaw(context.Background())
		if err != nil {
			r.write("\n  log of %s: %v", c.Name, err)
			continue
		}
		r.write("\n  log of %s: %s", c.Name, strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "\n    "))
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
