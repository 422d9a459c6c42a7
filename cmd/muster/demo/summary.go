package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/kubernetes"

	"github.com/musterhq/muster/cmd/muster/show"
	"github.com/musterhq/muster/cmd/muster/view"
)

// summary returns a table of the jobs in the order in which they started: how each ended, how long it waited and ran.
func summary(jobs []view.Job) string {
	table := &metav1.Table{}
	for _, name := range []string{"Job", "Queue", "Prio", "State", "Waited", "Ran", "Remark"} {
		table.ColumnDefinitions = append(table.ColumnDefinitions, metav1.TableColumnDefinition{Name: name, Type: "string"})
	}
	for i := range jobs {
		job := &jobs[i]
		ran := view.Seconds(job.RunSeconds)
		if job.State == view.Admitted {
			ran = "-" // it has no pods
		}
		table.Rows = append(table.Rows, metav1.TableRow{Cells: []any{
			job.FullTitle(), job.Queue, int64(job.Priority), string(job.State), view.Seconds(job.WaitSeconds),
			ran, show.Why(job),
		}})
	}
	lines, err := show.Lines(table, printers.PrintOptions{})
	if err != nil {
		return err.Error()
	}
	return strings.Join(lines, "\n")
}

// explainWithin bounds explainOpen, after the demo's own timeout has passed.
const explainWithin = 10 * time.Second

// explainOpen prints, for each unfinished job, the output of `muster explain`, before the cluster is stopped. It uses a
// context of its own, because that of the demo has ended.
func (s *stage) explainOpen(last standing) {
	ctx, cancel := context.WithTimeout(context.Background(), explainWithin)
	defer cancel()
	snapshot, err := s.cluster.SnapshotAll(ctx, "")
	if err != nil {
		return // the demo's own error reports that the cluster is gone
	}

	now := time.Now()
	jobs := view.Jobs(snapshot, now)
	for i := range jobs {
		if !slices.Contains(last.open, jobs[i].FullTitle()) {
			continue
		}
		snapshot.Pods, _ = s.cluster.PodsOf(ctx, &jobs[i]) // without pods the rest is still useful
		var text strings.Builder
		if err := show.Explanation(&text, view.Explain(snapshot, jobs, jobs[i], now)); err == nil {
			s.console.say("\n%s", strings.TrimRight(text.String(), "\n"))
		}
	}
}

// showLog prints the log of the first worker of the first job that ran on a node that is not simulated. A missing log
// does not fail the demo.
func (s *stage) showLog(ctx context.Context, jobs []view.Job) {
	client, err := kubernetes.NewForConfig(s.config)
	if err != nil {
		s.console.say("\nno log: %v", err)
		return
	}
	for i := range jobs {
		pod, err := s.workerHere(ctx, client, &jobs[i])
		if err != nil {
			s.console.say("\nno log of %s: %v", jobs[i].FullTitle(), err)
			return
		}
		if pod == nil {
			continue
		}
		text, err := client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
		if err != nil {
			s.console.say("\nno log of pod %s/%s: %v", pod.Namespace, pod.Name, err)
			return
		}
		s.console.say("\nlog of %s, pod %s:", jobs[i].FullTitle(), pod.Name)
		s.console.say("  %s", strings.ReplaceAll(strings.TrimRight(string(text), "\n"), "\n", "\n  "))
		return
	}
}

// workerHere returns the first of a job's pods that ran on a node that is not simulated, nil if none did.
func (s *stage) workerHere(ctx context.Context, client kubernetes.Interface, job *view.Job) (*corev1.Pod, error) {
	pods, err := s.cluster.PodsOf(ctx, job)
	if err != nil || len(pods) == 0 {
		return nil, err
	}
	var first *corev1.Pod
	for i := range pods {
		pod := &pods[i]
		if pod.Spec.NodeName != "" && (first == nil || completionIndex(pod) < completionIndex(first)) {
			first = pod
		}
	}
	if first == nil {
		return nil, nil
	}
	node, err := client.CoreV1().Nodes().Get(ctx, first.Spec.NodeName, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read its node: %w", err)
	}
	if node.Labels[view.SimulatedLabel] == "true" {
		return nil, nil
	}
	return first, nil
}

// completionIndex returns a key that sorts a job's pods: the completion index, padded so that it sorts numerically, or
// the name of the pod.
func completionIndex(pod *corev1.Pod) string {
	return fmt.Sprintf("%10s/%s", pod.Annotations[batchv1.JobCompletionIndexAnnotation], pod.Name)
}
