package chart

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// withPrometheus are the values for a cluster with the Prometheus Operator, whose definitions test clusters lack.
var withPrometheus = values{
	"service":        values{"enablePrometheus": true},
	"serviceMonitor": values{"enabled": true, "labels": values{"release": "monitoring"}},
	"alerts":         values{"enabled": true, "labels": values{"release": "monitoring"}},
}

// TestServiceMonitorSelectsTheMetrics checks that the ServiceMonitor selects the Service, and a port of it.
func TestServiceMonitorSelectsTheMetrics(t *testing.T) {
	text, err := render(t, tested, withPrometheus)
	if err != nil {
		t.Fatal(err)
	}
	objects := decode(t, text)
	monitor, service := find(t, objects, "ServiceMonitor", "lattice-operator"),
		find(t, objects, "Service", "lattice-operator")
	if monitor == nil || service == nil {
		t.Fatalf("the ServiceMonitor is %v, the Service %v", monitor, service)
	}
	if got := monitor.GetLabels()["release"]; got != "monitoring" {
		t.Errorf("the label release of the ServiceMonitor is %q, want monitoring", got)
	}
	selector, _, _ := unstructured.NestedStringMap(monitor.Object, "spec", "selector", "matchLabels")
	if len(selector) == 0 || !labels.SelectorFromSet(selector).Matches(labels.Set(service.GetLabels())) {
		t.Errorf("the ServiceMonitor selects %v, and the Service has %v", selector, service.GetLabels())
	}
	endpoints, _, _ := unstructured.NestedSlice(monitor.Object, "spec", "endpoints")
	ports, _, _ := unstructured.NestedSlice(service.Object, "spec", "ports")
	if got, want := endpoints[0].(map[string]any)["port"], ports[0].(map[string]any)["name"]; got != want {
		t.Errorf("the ServiceMonitor reads the port %q, and the Service has %q", got, want)
	}
	if len(service.GetAnnotations()) > 0 { // a Prometheus that follows both would read each operator twice
		t.Errorf("beside the ServiceMonitor, the Service has the annotations %v", service.GetAnnotations())
	}
}

// TestPrometheusRuleHasTheAlerts checks that the PrometheusRule is the file of alerts. test/alerts evaluates them.
func TestPrometheusRuleHasTheAlerts(t *testing.T) {
	text, err := render(t, tested, withPrometheus)
	if err != nil {
		t.Fatal(err)
	}
	rule := find(t, decode(t, text), "PrometheusRule", "lattice-operator")
	if rule == nil {
		t.Fatal("there is none")
	}
	if got := rule.GetLabels()["release"]; got != "monitoring" {
		t.Errorf("the label release is %q, want monitoring", got)
	}
	file, err := os.ReadFile(filepath.Join(folder, "alerts", "muster.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if want, got := decode(t, string(file))[0].Object, rule.Object["spec"]; !reflect.DeepEqual(got, want) {
		t.Errorf("the spec is %v, want that of the file: %v", got, want)
	}
}
