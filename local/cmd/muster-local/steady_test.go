package main

import (
	"context"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/kubernetes"
)

// idleMegabytes bounds the resident memory of an idle cluster with a node.
const idleMegabytes = 600

func TestAnIdleClusterIsSmallAndWritesLeasesOnly(t *testing.T) {
	if testing.Short() {
		t.Skip("watches an idle cluster for half a minute")
	}
	p := up(t, "--ephemeral", "--no-operator", "--nodes", "1", "--sim-nodes", "4")
	client := p.client(t)

	before := settledWrites(t, client)
	time.Sleep(30 * time.Second) // measure an idle period
	for what, count := range writes(t, client) {
		if count > before[what] && !strings.HasSuffix(what, "coordination.k8s.io/leases") {
			t.Errorf("%s: %.0f writes in 30 idle seconds, want none", what, count-before[what])
		}
	}
	got := residentMegabytes(t, p.command.Process.Pid)
	t.Logf("the cluster uses %d MB of memory, at most %d are allowed", got, idleMegabytes)
	if got > idleMegabytes {
		t.Errorf("the cluster uses %d MB of memory, want at most %d", got, idleMegabytes)
	}
	if code := p.stop(t, syscall.SIGTERM); code != 0 {
		t.Errorf("the cluster exited with code %d: %s", code, p.errors.String())
	}
}

// nodeMonitorPeriod is longer than the period of the node lifecycle controller, which writes an event for each new
// node.
const nodeMonitorPeriod = 12 * time.Second

// settledWrites returns the counts of writes after none has been made for a while.
func settledWrites(t *testing.T, client *kubernetes.Clientset) map[string]float64 {
	t.Helper()
	last := writes(t, client)
	for range 5 {
		time.Sleep(nodeMonitorPeriod)
		now := writes(t, client)
		quiet := true
		for what, count := range now {
			quiet = quiet && (count == last[what] || strings.HasSuffix(what, "coordination.k8s.io/leases"))
		}
		if quiet {
			return now
		}
		last = now
	}
	t.Fatal("timed out waiting until the cluster stops writing")
	return nil
}

// writes counts the requests that change objects, by verb and resource.
func writes(t *testing.T, client *kubernetes.Clientset) map[string]float64 {
	t.Helper()
	raw, err := client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]float64{}
	for _, metric := range families["apiserver_request_total"].GetMetric() {
		labels := map[string]string{}
		for _, label := range metric.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		switch labels["verb"] {
		case "POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION":
			counts[labels["verb"]+" "+labels["group"]+"/"+labels["resource"]] += metric.GetCounter().GetValue()
		}
	}
	return counts
}

func residentMegabytes(t *testing.T, pid int) int {
	t.Helper()
	content, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(content), "VmRSS:")
	kilobytes, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kilobytes / 1024
}
