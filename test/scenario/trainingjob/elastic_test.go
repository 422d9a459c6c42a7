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

// TestTheWorkedExampleOfFiveUnits: a job shrinks, though not below its minimum, for a new job. A job whose priority is
// raised takes all that it can use and stops the other, which resumes with its maximum when the quota is free again.
func TestTheWorkedExampleOfFiveUnits(t *testing.T) {
	w := newWorld(t)
	w.queue(5)
	w.Create(w.job("job1", 2, 4))
	pods := w.untilWorkers("job1", 4)
	w.Create(w.job("job2", 2, 4))
	w.untilRuns("job2", 2)
	w.ExpectSamePods(pods, w.untilWorkers("job1", 3))
	w.patch("job2", `{"spec": {"priority": 1}}`)
	w.untilStage("job1", breezeml.StageWaiting, 0)
	w.untilRuns("job2", 4)
	w.Delete(&breezeml.TrainingJob{ObjectMeta: metav1.ObjectMeta{Name: "job2", Namespace: w.Namespace}})
	w.untilRuns("job1", 4)
}

// TestTheWorkedExampleOfAFixedSize: a job with equal minimum and maximum keeps its size, and an elastic job uses what
// is left.
func TestTheWorkedExampleOfAFixedSize(t *testing.T) {
	w := newWorld(t)
	w.queue(5)
	w.Create(w.job("first", 3, 3))
	w.untilRuns("first", 3)
	w.Create(w.job("second", 1, 3))
	w.untilRuns("second", 2)
	w.untilRuns("first", 3)
}

// TestOperatorKilledWhileAJobIsResized: the operator is killed while a job shrinks, grows, and shrinks to its minimum
// for a higher priority. The sizes are the same as without the kills, and workers that stay keep their pods.
func TestOperatorKilledWhileAJobIsResized(t *testing.T) {
	w := newWorld(t)
	w.queue(5)
	w.Create(w.job("job1", 2, 4))
	pods := w.untilWorkers("job1", 4)
	job2 := w.job("job2", 2, 4)
	w.Create(job2)
	w.Operator().Kill()
	w.untilRuns("job2", 2)
	pods = w.ExpectSamePods(pods, w.untilWorkers("job1", 3))
	w.Delete(job2)
	w.Operator().Kill()
	pods = w.ExpectSamePods(pods, w.untilWorkers("job1", 4))
	w.Create(w.job("urgent", 3, 3, priority(1)))
	w.Operator().Kill()
	w.untilRuns("urgent", 3)
	w.ExpectSamePods(pods, w.untilWorkers("job1", 2))
}

// TestARealTrainingIsResized: a training that runs as processes of this machine is resized from 2 to 4 to 3 workers.
// After each resize it continues from its last step and loss, and worker 0 keeps its pod.
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
	log.untilTrained(t, 2, 40)
	w.Delete(&breezeml.TrainingJob{ObjectMeta: metav1.ObjectMeta{Name: "neighbour", Namespace: w.Namespace}})
	log.untilTrained(t, 4, 40)
	w.Create(w.sleeper("urgent", 1, 5))
	log.untilTrained(t, 3, 40)
	for i, r := range log.rounds {
		if (r.step == 0) != (i == 0) {
			t.Errorf("round %d of %v begins at step %d: only the first round may begin at step 0", i, log.rounds, r.step)
		}
	}
}

// machineQueue creates a ClusterQueue with a quota of that many pods, without nodes of its own, so that they may run on
// this machine, and the LocalQueue default.
func (w *world) machineQueue(pods int64) {
	w.Helper()
	w.Queue("default", kueue.ResourceFlavorSpec{},
		corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(pods, resource.DecimalSI)})
}

// sleeper returns a TrainingJob of a fixed size whose workers sleep on this machine.
func (w *world) sleeper(name string, size, prio int32) *breezeml.TrainingJob {
	return w.job(name, size, size, priority(prio), func(job *breezeml.TrainingJob) {
		c := &job.Spec.ReplicaSpecs.Template.Spec.Containers[0]
		c.Command, c.Resources = []string{"sleep", "600"}, corev1.ResourceRequirements{}
	})
}

// training returns the objects of the example in the namespace, without its batch Job, with many steps.
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

// setSteps makes the job train for longer than the test takes.
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

// trainingLog reads the log of the worker with rank 0.
type trainingLog struct {
	lines  *bufio.Scanner
	rounds []round
	// step and loss are the last ones in the log.
	step int
	loss float64
}

// round is the time between two resizes: its number of workers and its first step.
type round struct{ workers, step int }

var (
	roundLine = regexp.MustCompile(`round of (\d+) begins at step (\d+)`)
	stepLine  = regexp.MustCompile(`step (\d+) loss ([0-9.]+) workers (\d+)`)
)

// follow follows the log of the pod, until the end of the test.
func (w *world) follow(pod string) *trainingLog {
	w.Helper()
	clients, err := kubernetes.NewForConfig(w.Cluster.Config)
	if err != nil {
		w.Fatal(err)
	}
	stream, err := clients.CoreV1().Pods(w.Namespace).GetLogs(pod,
		&corev1.PodLogOptions{Follow: true, Container: "trainingjob"}).Stream(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = stream.Close() })
	return &trainingLog{lines: bufio.NewScanner(stream), loss: 1000}
}

// untilTrained reads until a round of that many workers has trained for that many steps. It fails the test if a step is
// repeated or the loss rises by more than noise, across rounds too: each step counts all samples, so the loss does not
// depend on the number of workers.
func (tl *trainingLog) untilTrained(t *testing.T, workers, steps int) {
	t.Helper()
	began := -1
	for tl.lines.Scan() {
		line := tl.lines.Text()
		if m := roundLine.FindStringSubmatch(line); m != nil {
			r := round{number(m[1]), number(m[2])}
			t.Log(line)
			if r.step < tl.step {
				t.Fatalf("%q begins before step %d, which is done: want no step repeated", line, tl.step)
			}
			tl.rounds = append(tl.rounds, r)
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
		if step <= tl.step || loss > tl.loss*1.5+0.01 {
			t.Fatalf("%q follows step %d with loss %.4f: want a later step and no higher loss", line, tl.step, tl.loss)
		}
		tl.step, tl.loss = step, loss
		if began >= 0 && number(m[3]) == workers && step >= began+steps {
			t.Log(line)
			return
		}
	}
	t.Fatalf("the log ends before %d workers have trained for %d steps: %v", workers, steps, tl.lines.Err())
}

// number parses a number that a pattern has matched.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(fmt.Sprintf("%q is no number", strings.TrimSpace(text)))
	}
	return n
}

// decimal parses a decimal number that a pattern has matched.
func decimal(text string) float64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(fmt.Sprintf("%q is no number", text))
	}
	return n
}
