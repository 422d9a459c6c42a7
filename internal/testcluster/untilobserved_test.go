package testcluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestUntilObserved: each check fails before its object exists, and succeeds after UntilObserved.
func TestUntilObserved(t *testing.T) {
	c := Get(t)
	amounts := func(name corev1.ResourceName, amount string) corev1.ResourceList {
		return corev1.ResourceList{name: resource.MustParse(amount)}
	}
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "widgets.example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Namespaced", "names": map[string]any{"kind": "Widget", "plural": "widgets"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}}},
		},
	}}
	for name, make := range map[string]func(namespace string) client.Object{
		"a priority class": func(name string) client.Object {
			return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: 1000}
		},
		"a runtime class": func(name string) client.Object {
			return &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Handler: "sandbox",
				Overhead: &nodev1.Overhead{PodFixed: amounts(corev1.ResourceCPU, "250m")}}
		},
		"limits of containers": func(namespace string) client.Object {
			return &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "small"},
				Spec: corev1.LimitRangeSpec{
					Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: amounts("example.com/gpu", "1")}}}}
		},
		"limits of pods": func(namespace string) client.Object {
			return &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "small"},
				Spec: corev1.LimitRangeSpec{
					Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypePod, Max: amounts(corev1.ResourceCPU, "500m")}}}}
		},
		"a quota of pods": func(namespace string) client.Object {
			return &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "none"},
				Spec: corev1.ResourceQuotaSpec{Hard: amounts(corev1.ResourcePods, "0")}}
		},
		"a quota that allows a pod": func(namespace string) client.Object {
			hard := amounts(corev1.ResourcePods, "1")
			hard[corev1.ResourceSecrets] = resource.MustParse("0")
			return &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one"},
				Spec: corev1.ResourceQuotaSpec{Hard: hard}}
		},
		"rights in a namespace": func(namespace string) client.Object {
			return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "viewers"},
				RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
				Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: namespace}}}
		},
		"rights": func(name string) client.Object {
			return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:monitoring"},
				Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name},
					{Kind: rbacv1.ServiceAccountKind, Namespace: name, Name: "default"}}}
		},
		"a definition": func(string) client.Object { return definition },
	} {
		t.Run(name, func(t *testing.T) {
			o := make(c.Namespace(t))
			if c.shows(o)(t.Context()) == nil {
				t.Fatal("the check succeeds although the object does not exist")
			}
			if err := c.Client.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			c.UntilObserved(t, o)
			for range 10 {
				if err := c.shows(o)(t.Context()); err != nil {
					t.Errorf("the check fails after UntilObserved: %v", err)
				}
			}
		})
	}
}

// TestPodRightAfterItsPriorityClassIsAccepted: without UntilObserved, one of many such pods would be rejected because
// the API server has not observed the class yet.
func TestPodRightAfterItsPriorityClassIsAccepted(t *testing.T) {
	c := Get(t)
	for range 30 {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{GenerateName: "late-"}, Value: 1000}
		if err := c.Client.Create(t.Context(), class); err != nil {
			t.Fatal(err)
		}
		c.UntilObserved(t, class)
		if _, err := c.try(t.Context(), metav1.NamespaceDefault,
			func(spec *corev1.PodSpec) { spec.PriorityClassName = class.Name }); err != nil {
			t.Error(err)
		}
	}
}
