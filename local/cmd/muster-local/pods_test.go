package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

func TestPodsRunAsProcessesThatEndWithTheCluster(t *testing.T) {
	dir := t.TempDir()
	first := up(t, "--dir", dir, "--no-operator")
	client := first.client(t)

	t.Run("logs of an ended pod", func(t *testing.T) {
		createPod(t, client, "greets", "echo from $(cat /var/run/secrets/kubernetes.io/serviceaccount/namespace)")
		awaitPhase(t, client, "greets", corev1.PodSucceeded)
		stream, err := client.CoreV1().Pods("default").GetLogs("greets", &corev1.PodLogOptions{}).Stream(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Close()
		if log, err := io.ReadAll(stream); string(log) != "from default\n" || err != nil {
			t.Errorf("log = %q, %v", log, err)
		}
	})

	mark := fmt.Sprintf("%d", 1_000_000_000+rand.IntN(1_000_000_000))
	createPod(t, client, "waits", "sleep "+mark)
	awaitPhase(t, client, "waits", corev1.PodRunning)
	if processes(t, mark) == 0 {
		t.Fatal("the process of a running pod was not found")
	}
	first.stop(t, syscall.SIGKILL)
	awaitNoProcess(t, mark, "the cluster was killed")

	second := up(t, "--dir", dir, "--no-operator")
	mark = fmt.Sprintf("%d", 1_000_000_000+rand.IntN(1_000_000_000))
	createPod(t, second.client(t), "waits-again", "sleep "+mark)
	awaitPhase(t, second.client(t), "waits-again", corev1.PodRunning)
	if code := second.stop(t, syscall.SIGTERM); code != 0 {
		t.Errorf("the second start exited with code %d: %s", code, second.errors.String())
	}
	if count := processes(t, mark); count != 0 {
		t.Errorf("%d processes of the pod are left after the cluster has stopped", count)
	}
}

func createPod(t *testing.T, client *kubernetes.Clientset, name, script string) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "main", Image: "none", Command: []string{"sh", "-c", script}}},
		},
	}
	if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func awaitPhase(t *testing.T, client *kubernetes.Clientset, name string, phase corev1.PodPhase) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), readyWithin)
	defer cancel()
	one := fields.OneTermEqualSelector("metadata.name", name)
	list := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", "default", one)
	_, err := watchtools.UntilWithSync(ctx, list, &corev1.Pod{}, nil, func(event watch.Event) (bool, error) {
		pod, ok := event.Object.(*corev1.Pod)
		return ok && pod.Status.Phase == phase, nil
	})
	if err != nil {
		t.Fatalf("timed out waiting until pod %s is %s: %v", name, phase, err)
	}
}

// processes counts this machine's processes whose command line contains the mark.
func processes(t *testing.T, mark string) int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, file := range files {
		// A process that has just ended has no command line.
		if line, err := os.ReadFile(file); err == nil && strings.Contains(string(line), mark) {
			count++
		}
	}
	return count
}

func awaitNoProcess(t *testing.T, mark, since string) {
	t.Helper()
	for deadline := time.Now().Add(readyWithin); processes(t, mark) != 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d processes of a pod are left after %s", processes(t, mark), since)
		}
	}
}
