package simnode

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// world is an in-memory API server with a fake clock, which advances only when nothing is left to do.
type world struct {
	t      *testing.T
	client *fake.Clientset

	mu     sync.Mutex
	logged []string
}

// inWorld runs a test in a world with these pods and nodes. A goroutine that is left after the test fails it.
func inWorld(t *testing.T, test func(*world)) {
	synctest.Test(t, func(t *testing.T) {
		test(&world{t: t, client: fake.NewClientset()})
	})
}

// start starts a simulation of that many nodes, which is stopped at the end of the test at the latest.
func (w *world) start(nodes int) *Cluster {
	w.t.Helper()
	sim, err := start(w.t.Context(), w.client, Config{
		Nodes: nodes, GPUs: 8, GPUProduct: "NVIDIA-H100-80GB-HBM3",
		Logf: func(format string, args ...any) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.logged = append(w.logged, fmt.Sprintf(format, args...))
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(sim.Stop)
	synctest.Wait()
	return sim
}

// pass advances the clock by d.
func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (w *world) create(pod *corev1.Pod) {
	w.t.Helper()
	if _, err := w.client.CoreV1().Pods(pod.Namespace).Create(w.t.Context(), pod, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	synctest.Wait()
}

func (w *world) pod(name string) *corev1.Pod {
	w.t.Helper()
	pod, err := w.client.CoreV1().Pods("default").Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return pod
}

func (w *world) updatePod(pod *corev1.Pod) {
	w.t.Helper()
	if _, err := w.client.CoreV1().Pods(pod.Namespace).Update(w.t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	synctest.Wait()
}

func (w *world) hasPod(name string) bool {
	w.t.Helper()
	_, err := w.client.CoreV1().Pods("default").Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		w.t.Fatal(err)
	}
	return err == nil
}

func (w *world) expectPhase(when string, want corev1.PodPhase) {
	w.t.Helper()
	if got := w.pod("p").Status.Phase; got != want {
		w.t.Errorf("%s: phase of the pod = %s, want %s", when, got, want)
	}
}

func (w *world) node(name string) *corev1.Node {
	w.t.Helper()
	node, err := w.client.CoreV1().Nodes().Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return node
}

func (w *world) nodeNames() []string {
	w.t.Helper()
	list, err := w.client.CoreV1().Nodes().List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	var names []string
	for _, node := range list.Items {
		names = append(names, node.Name)
	}
	slices.Sort(names)
	return names
}

func (w *world) createNode(node *corev1.Node) {
	w.t.Helper()
	if _, err := w.client.CoreV1().Nodes().Create(w.t.Context(), node, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	synctest.Wait()
}

func (w *world) updateNode(node *corev1.Node) {
	w.t.Helper()
	if _, err := w.client.CoreV1().Nodes().Update(w.t.Context(), node, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	synctest.Wait()
}

func (w *world) deleteNode(name string) {
	w.t.Helper()
	if err := w.client.CoreV1().Nodes().Delete(w.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
	synctest.Wait()
}

// setReady sets the status of the Node's Ready condition, to simulate a failure.
func (w *world) setReady(name string, status corev1.ConditionStatus) {
	w.t.Helper()
	node := w.node(name)
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == corev1.NodeReady {
			node.Status.Conditions[i].Status = status
		}
	}
	w.updateNode(node)
}

// writes returns the writes since the last call, each as "verb resource/subresource".
func (w *world) writes() []string {
	var writes []string
	for _, action := range w.client.Actions() {
		if slices.Contains([]string{"get", "list", "watch"}, action.GetVerb()) {
			continue
		}
		text := action.GetVerb() + " " + action.GetResource().Resource
		if action.GetSubresource() != "" {
			text += "/" + action.GetSubresource()
		}
		writes = append(writes, text)
	}
	w.client.ClearActions()
	return writes
}

// failing makes the next writes of this kind fail, up to the given number of times.
func (w *world) failing(verb, resource string, times int, err error) {
	w.client.PrependReactor(verb, resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		if times == 0 {
			return false, nil, nil
		}
		times--
		return true, nil, err
	})
}

func (w *world) expectRestarts(when string, want int32) {
	w.t.Helper()
	if got := w.pod("p").Status.ContainerStatuses[0].RestartCount; got != want {
		w.t.Errorf("%s: the container was restarted %d times, want %d", when, got, want)
	}
}
