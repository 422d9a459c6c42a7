package view

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/podspec"
)

func TestAmountsInColumns(t *testing.T) {
	for text, want := range map[string]string{
		"24684084Ki": "23.5Gi", "-24684084Ki": "-23.5Gi", "1048575Ki": "1024.0Mi", "123456Ki": "123456Ki",
		"4Gi": "4Gi", "0": "0",
		"1k": "1000", "123456789": "123456789", "1500m": "1.5", "764400m": "764.4", "-1500m": "-1.5",
		"-500m": "-500m", "500m": "500m",
	} {
		if got := Rounded(resource.MustParse(text)); got != want {
			t.Errorf("Rounded(%s) = %s, want %s", text, got, want)
		}
	}
}

// To add one to 1e2147483647 takes practically forever.
func TestExtremeRequestsAreAddedUp(t *testing.T) {
	template := podTemplate(list("a.b/x", "1e2147483647"), nil)
	template.Spec.Containers = append(template.Spec.Containers, podTemplate(list("a.b/x", "1"), nil).Spec.Containers...)
	template.Spec.InitContainers = podTemplate(list("cpu", "0e2147483647"), list("memory", "1e2147483647")).Spec.Containers
	sum := make(chan corev1.ResourceList)
	go func() {
		total := corev1.ResourceList{}
		podspec.AddTimes(total, podspec.Requests(template.Spec), 3)
		sum <- total
	}()
	select {
	case got := <-sum:
		if text := Amounts(got, true); text != "1e30 x, 1e30 memory" {
			t.Errorf("requests = %s", text)
		}
	case <-time.After(20 * time.Second):
		t.Error("no end after 20 s")
	}
}

func TestDevicesThatAQueueDoesNotCountAreShown(t *testing.T) {
	for name, test := range map[string]struct{ asked, counted, want []string }{
		"a queue without limit": {[]string{"nvidia.com/gpu", "8", "cpu", "1"}, []string{"pods", "4"},
			[]string{"pods", "4", "nvidia.com/gpu", "32"}},
		"devices that count as another resource": {[]string{"nvidia.com/mig-1g.5gb", "1"},
			[]string{"example.com/gpu-memory", "20Gi"}, []string{"example.com/gpu-memory", "20Gi"}},
		"a resource of which there is none": {[]string{"cpu", "1"}, []string{"cpu", "4"}, []string{"cpu", "4"}},
	} {
		w := &kueue.Workload{}
		w.Spec.PodSets = []kueue.PodSet{{Name: "main", Count: 5, Template: podTemplate(list(test.asked...), nil)}}
		w.Status.Admission = &kueue.Admission{PodSetAssignments: []kueue.PodSetAssignment{{Name: "main",
			Count: ptr.To[int32](4), ResourceUsage: list(test.counted...)}}}
		if got, pods := admittedAmounts(w); Amounts(got, true) != Amounts(list(test.want...), true) || pods != 4 {
			t.Errorf("%s: admitted amounts = %s of %d pods", name, Amounts(got, true), pods)
		}
	}
}

// TestReturnedQuotaIsNotShownAsHeld: quota returned by finished pods or by a shrunk job is not shown as held.
func TestReturnedQuotaIsNotShownAsHeld(t *testing.T) {
	w := aWorkload("train", admitted(2), func(w *kueue.Workload) {
		w.Status.ReclaimablePods = []kueue.ReclaimablePod{{Name: "workers", Count: 3}}
	})
	if got, pods := admittedAmounts(&w); Amounts(got, false) != "8 gpu" || pods != 4 {
		t.Errorf("shown for %d pods: %s, want 8 gpu of 4 pods", pods, Amounts(got, true))
	}
	if asks := asksOf(&w); asks[0].Left == nil || *asks[0].Left != 1 {
		t.Errorf("request = %+v, want one pod left", asks[0])
	}
	w.Status.Conditions = append(w.Status.Conditions,
		metav1.Condition{Type: kueue.WorkloadFinished, Status: metav1.ConditionTrue})
	if got, _ := admittedAmounts(&w); Amounts(got, false) != "32 gpu" {
		t.Errorf("admitted amounts = %s, want 32 gpu", Amounts(got, true))
	}
}

// TestTheShareOfALargeAdmissionIsExact: 10 PiB are more than an int64 of thousandths can hold.
func TestTheShareOfALargeAdmissionIsExact(t *testing.T) {
	w := &kueue.Workload{}
	w.Spec.PodSets = []kueue.PodSet{{Name: "main", Count: 10000,
		Template: podTemplate(list("cpu", "500m", "memory", "1Ti"), nil)}}
	w.Status.Admission = &kueue.Admission{PodSetAssignments: []kueue.PodSetAssignment{{Name: "main",
		Count: ptr.To[int32](10000), ResourceUsage: list("cpu", "5000", "memory", "10000Ti")}}}
	w.Status.ReclaimablePods = []kueue.ReclaimablePod{{Name: "main", Count: 5001}}
	if got, _ := admittedAmounts(w); Amounts(got, true) != "2499.5 cpu, 4999Ti memory" {
		t.Errorf("half of the pods hold %s, want 2499.5 cpu, 4999Ti memory", Amounts(got, true))
	}
}
