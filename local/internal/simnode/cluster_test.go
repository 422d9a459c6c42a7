package simnode

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
)

func TestABoundPodRunsForItsTimeAndSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		sim, err := start(t.Context(), client, Config{Nodes: 1, GPUs: 8, GPUProduct: "NVIDIA-L4"})
		if err != nil {
			t.Fatal(err)
		}
		defer sim.Stop()
		pod := podWith(lasting("90s"))
		if _, err := client.CoreV1().Pods(pod.Namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		got, _ := client.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
		fmt.Println(got.Status.Phase, got.Status.PodIP)
		time.Sleep(90 * time.Second)
		synctest.Wait()
		got, _ = client.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
		fmt.Println(got.Status.Phase, got.Status.PodIP)
	})
	_ = context.Background
	_ = types.UID("")
	_ = corev1.PodFailed
}
