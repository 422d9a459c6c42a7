package simnode

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	watchtools "k8s.io/client-go/tools/watch"
)

// TestThroughputOnARealControlPlane is run by hand. It measures the time of pods from creation to completion on a
// cluster with simulated nodes, of which there must be one for every ten pods:
//
//	muster up --ephemeral --no-operator --nodes 0 --sim-nodes 200
//	MUSTER_SIM_KUBECONFIG=… [MUSTER_SIM_PODS=2000] go test -v -run Throughput ./internal/simnode
func TestThroughputOnARealControlPlane(t *testing.T) {
	kubeconfig := os.Getenv("MUSTER_SIM_KUBECONFIG")
	if kubeconfig == "" {
		t.Skip("MUSTER_SIM_KUBECONFIG does not name a cluster")
	}
	pods := 2000
	if text := os.Getenv("MUSTER_SIM_PODS"); text != "" {
		var err error
		if pods, err = strconv.Atoi(text); err != nil {
			t.Fatalf("MUSTER_SIM_PODS: %v", err)
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := newClient(config)
	if err != nil {
		t.Fatal(err)
	}
	namespace, err := client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "throughput-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	var creations errgroup.Group
	creations.SetLimit(32)
	for i := range pods {
		creations.Go(func() error { return createPod(t.Context(), client, namespace.Name, i) })
	}
	if err := creations.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d pods created in %.1fs", pods, time.Since(begin).Seconds())
	awaitSucceeded(t, client, namespace.Name, pods)
	took := time.Since(begin).Seconds()
	t.Logf("%d pods from creation to Succeeded in %.1fs: %.0f pods/s", pods, took, float64(pods)/took)
}

func createPod(ctx context.Context, client kubernetes.Interface, namespace string, index int) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("p-%05d", index), Annotations: map[string]string{AnnotationDuration: "100ms"},
		},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Tolerations:   []corev1.Toleration{{Key: LabelSimulated, Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{
				Name: "main", Image: "train",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
			}},
		},
	}
	_, err := client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	return err
}

func awaitSucceeded(t *testing.T, client kubernetes.Interface, namespace string, count int) {
	t.Helper()
	pods := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client.CoreV1().Pods(namespace).List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return client.CoreV1().Pods(namespace).Watch(ctx, o)
		},
	}, client)
	succeeded := map[string]bool{}
	_, err := watchtools.UntilWithSync(t.Context(), pods, &corev1.Pod{}, nil, func(event watch.Event) (bool, error) {
		pod := event.Object.(*corev1.Pod)
		if pod.Status.Phase == corev1.PodSucceeded {
			succeeded[pod.Name] = true
		}
		return len(succeeded) == count, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
