package trainingjob

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/examples"
)

// TestTheWorkedCaseOfFiveUnits: a job gives of what it has beyond its minimum to one that comes, a higher priority takes
// all that it can use, and who is stopped for it comes back with all there is.
func TestTheWorkedCaseOfFiveUnits(t *testing.T) {
	w := newWorld(t)
	w.queue(5)
	w.Create(w.job("job1", 2, 4))
	pods := w.untilWorkers("job1", 4)
	w.Create(w.job("job2", 2, 4))
	w.untilRuns("job2", 2)
	w.ExpectSamePods(pods, w.untilWorkers("job1", 3))
	w.patch("job2", `{"spec": {"priority": 1}}`)
	w.untilStands("job1", breezeml.StageWaiting, 0)
	w.untilRuns("job2", 4)
	w.Delete(&breezeml.TrainingJob{ObjectMeta: metav1.ObjectMeta{Name: "job2", Namespace: w.Namespace}})
	w.untilRuns("job1", 4)
}

// TestTheWorkedCaseOfTwoSizes: who has but one size keeps it; who has several takes the rest.
func TestTheWorkedCaseOfTwoSizes(t *testing.T) {
	w := newWorld(t)
	w.queue(5)
	w.Create(w.job("first", 3, 3))
	w.untilRuns("first", 3)
	w.Create(w.job("second", 1, 3))
	w.untilRuns("second", 2)
	w.untilRuns("first", 3)
}

// TestOperatorKilledWhileAJobIsResized: as it shrinks, as it grows, and as a higher priority brings it down to its minimum.
// The sizes are the same in the end, and nobody who stays is made anew.
func TestOperatorKilledWhileAJobIsResized(t *testing.T) {
	w := newWorld(t)
	w.queue(5)
	w.Create(w.job("job1", 2, 4))
	pods := w.untilWorkers("job1", 4)
	job2 := w.job("job2", 2, 4)
	w.Create(job2)
	w.KillOperator()
	w.untilRuns("job2", 2)
	pods = w.ExpectSamePods(pods, w.untilWorkers("job1", 3))
	w.Delete(job2)
	w.KillOperator()
	pods = w.ExpectSamePods(pods, w.untilWorkers("job1", 4))
	w.Create(w.job("urgent", 3, 3, priority(1)))
	w.KillOperator()
	w.untilRuns("urgent", 3)
	w.ExpectSamePods(pods, w.untilWorkers("job1", 2))
}

// TestARealTrainingIsResized: 2 -> 4 -> 3 workers while it runs, on this machine. After each resize the loss goes on from
// where it was, in the pods that stay.
func TestARealTrainingIsResized(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("the example is written in Python, and there is no python3 in the PATH")
	}
	w := newWorld(t)
	w.machineQueue(4)
	job := w.training()
	w.Create(w.sleeper("neighbour", 2, 0))
	w.untilRuns("neighbour", 2)
	w.Create(job...)
	w.untilRuns("spirals", 2)
	log := w.follow("spirals-worker-0")
	log.until(t, 2, 40)
	w.Delete(&breezeml.TrainingJob{ObjectMeta: metav1.ObjectMeta{Name: "neighbour", Namespace: w.Namespace}})
	log.until(t, 4, 40)
	w.Create(w.sleeper("urgent", 1, 5))
	log.until(t, 3, 40)
	for i, r := range log.rounds {
		if (r.step == 0) != (i == 0) {
			t.Errorf("round %d of %v begins at step %d", i, log.rounds, r.step)
		}
	}
}

// machineQueue is queue of so many pods that run on this machine.
func (w *world) machineQueue(pods int64) {
	w.Helper()
	w.Shared(
		&kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}},
		&kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Spec: kueue.ClusterQueueSpec{
			NamespaceSelector: &metav1.LabelSelector{},
			ResourceGroups: []kueue.ResourceGroup{{
				CoveredResources: []corev1.ResourceName{corev1.ResourcePods},
				Flavors: []kueue.FlavorQuotas{{Name: kueue.ResourceFlavorReference(w.Namespace),
					Resources: []kueue.ResourceQuota{{Name: corev1.ResourcePods, NominalQuota: *resource.NewQuantity(pods, resource.DecimalSI)}}}},
			}},
		}})
	w.Create(&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: w.Namespace},
		Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(w.Namespace)}})
}

// sleeper is a TrainingJob of one size that does nothing, on this machine.
func (w *world) sleeper(name string, size, rank int32) *breezeml.TrainingJob {
	return w.job(name, size, size, priority(rank), func(job *breezeml.TrainingJob) {
		c := &job.Spec.ReplicaSpecs.Template.Spec.Containers[0]
		c.Command, c.Resources = []string{"sleep", "600"}, corev1.ResourceRequirements{}
	})
}

// training is the example, all of it but its neighbour, in the namespace and for many steps.
func (w *world) training() []client.Object {
	w.Helper()
	file, err := examples.Files.Open("trainingjob/elastic-training.yaml")
	if err != nil {
		w.Fatal(err)
	}
	var out []client.Object
	decoder := yaml.NewYAMLOrJSONDecoder(file, 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			w.Fatal(err)
		}
		if object.GetKind() == "Job" {
			continue
		}
		object.SetNamespace(w.Namespace)
		if object.GetKind() == "TrainingJob" {
			w.setSteps(object)
		}
		out = append(out, object)
	}
}

// setSteps has it train for longer than the test takes.
func (w *world) setSteps(job *unstructured.Unstructured) {
	w.Helper()
	path := []string{"spec", "replicaSpecs", "template", "spec", "containers"}
	containers, _, err := unstructured.NestedSlice(job.Object, path...)
	if err != nil {
		w.Fatal(err)
	}
	c := containers[0].(map[string]any)
	c["env"] = append(c["env"].([]any), map[string]any{"name": "STEPS", "value": "1000000"})
	if err := unstructured.SetNestedSlice(job.Object, containers, path...); err != nil {
		w.Fatal(err)
	}
}

// trainingLog reads what the worker with rank 0 says.
type trainingLog struct {
	lines  *bufio.Scanner
	rounds []round
	// step and loss are the last that were told.
	step int
	loss float64
}

type round struct{ workers, step int }

var (
	beginsLine = regexp.MustCompile(`round of (\d+) begins at step (\d+)`)
	stepLine   = regexp.MustCompile(`step (\d+) loss ([0-9.]+) workers (\d+)`)
)

func (w *world) follow(pod string) *trainingLog {
	w.Helper()
	clients, err := kubernetes.NewForConfig(w.Cluster.Config)
	if err != nil {
		w.Fatal(err)
	}
	stream, err := clients.CoreV1().Pods(w.Namespace).GetLogs(pod, &corev1.PodLogOptions{Follow: true, Container: "trainingjob"}).Stream(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = stream.Close() })
	return &trainingLog{lines: bufio.NewScanner(stream), loss: 1000}
}

// until reads until a round of so many workers has trained for so many steps. On the way steps only go on, and with them
// the loss falls, across rounds too: all samples count in each step, so it does not depend on how many share them.
func (l *trainingLog) until(t *testing.T, workers, steps int) {
	t.Helper()
	began := -1
	for l.lines.Scan() {
		line := l.lines.Text()
		if m := beginsLine.FindStringSubmatch(line); m != nil {
			r := round{number(m[1]), number(m[2])}
			t.Log(line)
			if r.step < l.step {
				t.Fatalf("the round %q begins before step %d, which was done", line, l.step)
			}
			l.rounds = append(l.rounds, r)
			began = -1
			if r.workers == workers {
				began = r.step
			}
			continue
		}
		m := stepLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		step, loss := number(m[1]), decimal(m[2])
		if step <= l.step || loss > l.loss*1.5+0.01 {
			t.Fatalf("%q follows step %d with loss %.4f", line, l.step, l.loss)
		}
		l.step, l.loss = step, loss
		if began >= 0 && number(m[3]) == workers && step >= began+steps {
			t.Log(line)
			return
		}
	}
	t.Fatalf("the log ends before a round of %d workers has gone on for %d steps: %v", workers, steps, l.lines.Err())
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(fmt.Sprintf("%q is no number", strings.TrimSpace(text)))
	}
	return n
}

func decimal(text string) float64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(fmt.Sprintf("%q is no number", text))
	}
	return n
}
