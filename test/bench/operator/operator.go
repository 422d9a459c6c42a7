// Package operator runs the operator as a child process of a test or benchmark, which chooses its flags and when it
// starts and ends, and reads its readiness, metrics and log. Only tests may import it.
package operator

import (
	"bytes"
	"math/rand/v2"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/internal/install"
	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/bench/figure"
)

// Operator is a running operator.
type Operator struct {
	figure.Process
	command *exec.Cmd
	probes  string // address of /readyz
	metrics string // address of /metrics
	log     bytes.Buffer
	// Began is when it was started.
	Began time.Time
	ended chan struct{}
}

// fieldManager is the operator's user agent, from which the API server derives the field manager of its writes.
const fieldManager = "muster-operator"

// namespace is the namespace of the operator's service account and lease.
const namespace = "muster-system"

// Start starts the binary with the given flags in addition to those that every test needs, and with the rights of the
// chart. When the test ends the operator is ended, if it still runs, and the test fails if the API server refused it a
// request.
func Start(t *testing.T, binary string, cluster *testcluster.Cluster, flags ...string) *Operator {
	t.Helper()
	return StartFor(t, binary, cluster, "", flags...)
}

// StartFor starts the operator with the rights of the chart for TrainingJobs of another API group; empty stands for
// breezeml.ai. The flags and what happens at the end of the test are as in Start.
func StartFor(t *testing.T, binary string, cluster *testcluster.Cluster, trainingJobGroup string,
	flags ...string) *Operator {
	t.Helper()
	grant(t, cluster, trainingJobGroup)
	return StartAs(t, binary, cluster, install.DefaultOperatorUser,
		append([]string{"--leader-election-namespace", namespace}, flags...)...)
}

// grant gives the operator the rights of the chart.
func grant(t *testing.T, cluster *testcluster.Cluster, trainingJobGroup string) {
	t.Helper()
	rights := install.Rights{User: install.DefaultOperatorUser, Namespace: namespace, TrainingJobGroup: trainingJobGroup}
	if err := install.GrantRights(t.Context(), cluster.Config, rights); err != nil {
		t.Fatalf("granting the operator's rights: %v", err)
	}
}

// StartAs starts the operator with the service account of the user name (system:serviceaccount:NAMESPACE:NAME). The
// caller has granted its rights.
func StartAs(t *testing.T, binary string, cluster *testcluster.Cluster, user string, flags ...string) *Operator {
	t.Helper()
	awaitRights(t, cluster, user)
	o := &Operator{probes: FreeAddress(t), metrics: FreeAddress(t), Began: time.Now(), ended: make(chan struct{})}
	o.command = exec.Command(binary, append([]string{"--kubeconfig", signIn(t, cluster, user),
		"--leader-elect=false", // after a kill, the next one need not wait for the lease to expire
		"--metrics-bind-address", o.metrics, "--health-probe-bind-address", o.probes}, flags...)...)
	o.command.Stdout, o.command.Stderr = &o.log, &o.log
	o.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // it must not outlive the test
	started := make(chan error)
	go o.run(started)
	if err := <-started; err != nil {
		t.Fatalf("starting the operator (make build makes it): %v", err)
	}
	o.Process = figure.Process(o.command.Process.Pid)
	t.Cleanup(func() {
		o.End(syscall.SIGTERM)
		if err := testcluster.Refusals(strings.NewReader(o.log.String())); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("last lines of the operator's log:\n%s", lastLines(o.log.String(), 20))
		}
	})
	return o
}

// awaitRights waits until the API server has observed all role bindings of the service account: until then it could
// refuse requests that they allow.
func awaitRights(t *testing.T, cluster *testcluster.Cluster, user string) {
	t.Helper()
	namespace, name, err := serviceaccount.SplitUsername(user)
	if err != nil {
		t.Fatal(err)
	}
	isUser := func(subject rbacv1.Subject) bool {
		return subject.Kind == rbacv1.ServiceAccountKind && subject.Namespace == namespace && subject.Name == name ||
			subject.Kind == rbacv1.UserKind && subject.Name == user
	}
	var clusterBindings rbacv1.ClusterRoleBindingList
	var bindings rbacv1.RoleBindingList
	for _, list := range []client.ObjectList{&clusterBindings, &bindings} {
		if err := cluster.Client.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	for i := range clusterBindings.Items {
		if slices.ContainsFunc(clusterBindings.Items[i].Subjects, isUser) {
			cluster.UntilObserved(t, &clusterBindings.Items[i])
		}
	}
	for i := range bindings.Items {
		if slices.ContainsFunc(bindings.Items[i].Subjects, isUser) {
			cluster.UntilObserved(t, &bindings.Items[i])
		}
	}
}

// SignIn returns a client configuration with a token of the operator's service account, which has the rights of the
// chart, and with the operator's field manager. To the API server such a client is the operator.
func SignIn(t *testing.T, cluster *testcluster.Cluster) *rest.Config {
	t.Helper()
	grant(t, cluster, "")
	awaitRights(t, cluster, install.DefaultOperatorUser)
	out := rest.AnonymousClientConfig(cluster.Config)
	out.UserAgent = fieldManager
	out.QPS = cluster.Config.QPS
	out.BearerToken = tokenOf(t, cluster, install.DefaultOperatorUser)
	return out
}

// signIn writes a kubeconfig with a token of the service account and returns its path. The API server then processes
// requests exactly as those of an operator in a cluster.
func signIn(t *testing.T, cluster *testcluster.Cluster, account string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	token := tokenOf(t, cluster, account)
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// tokenOf returns a token of the service account, which it creates if it does not exist.
func tokenOf(t *testing.T, cluster *testcluster.Cluster, account string) string {
	t.Helper()
	namespace, name, err := serviceaccount.SplitUsername(account)
	if err != nil {
		t.Fatal(err)
	}
	accounts := kubernetes.NewForConfigOrDie(cluster.Config).CoreV1().ServiceAccounts(namespace)
	_, err = accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}},
		metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	token, err := accounts.CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("requesting a token of %s: %v", account, err)
	}
	return token.Status.Token
}

// Impersonate returns a client configuration that impersonates the operator's user, with all rights.
func Impersonate(config *rest.Config) *rest.Config {
	out := rest.CopyConfig(config)
	out.Impersonate = rest.ImpersonationConfig{UserName: install.DefaultOperatorUser, Groups: []string{"system:masters"}}
	return out
}

// run starts the process and waits for its end on one thread, because Pdeathsig is sent when the thread that started
// the child ends.
func (o *Operator) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := o.command.Start()
	started <- err
	if err == nil {
		_ = o.command.Wait() // tests check the effects of the end, not the exit code
		close(o.ended)
	}
}

// End sends the signal and waits for the end of the process.
func (o *Operator) End(signal syscall.Signal) {
	_ = o.command.Process.Signal(signal) // fails if the process has ended
	<-o.ended
}

// Log returns the log of an operator that has ended.
func (o *Operator) Log() string {
	<-o.ended
	return o.log.String()
}

// endTimeout is how long an operator may take to end by itself.
const endTimeout = 4 * time.Minute

// AwaitEnd waits until the operator has ended by itself, and returns the last lines of its log.
func (o *Operator) AwaitEnd(t *testing.T) string {
	t.Helper()
	select {
	case <-o.ended:
	case <-time.After(endTimeout):
		t.Fatalf("the operator did not end by itself within %s", endTimeout)
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
	return lastLines(o.log.String(), 5)
}

// AwaitReady waits until the operator is ready, which means that its caches have synced, and returns the time since its
// start.
func (o *Operator) AwaitReady(t *testing.T) time.Duration {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		if o.Readiness() == http.StatusOK {
			return time.Since(o.Began)
		}
		select {
		case <-ticker.C: // readiness can only be polled
		case <-o.ended:
			t.Fatal("the operator ended before it was ready")
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
}

// Readiness returns the HTTP status of the readiness probe, 0 if the operator does not answer.
func (o *Operator) Readiness() int { return o.probe("/readyz") }

// Alive reports whether the liveness probe succeeds.
func (o *Operator) Alive() bool { return o.probe("/healthz") == http.StatusOK }

func (o *Operator) probe(path string) int {
	response, err := http.Get("http://" + o.probes + path)
	if err != nil {
		return 0
	}
	response.Body.Close()
	return response.StatusCode
}

// Observed returns the number and the sum of a histogram's observations, of all series that have the labels, given as
// name=value.
func (o *Operator) Observed(t *testing.T, histogram string, labels ...string) (count uint64, sum float64) {
	t.Helper()
	found := o.readMetrics(t, labels)[histogram]
	return found.observations, found.sum
}

// Counted returns the sum of a counter's series that have the labels, given as name=value.
func (o *Operator) Counted(t *testing.T, counter string, labels ...string) float64 {
	t.Helper()
	return o.readMetrics(t, labels)[counter].value
}

// Metrics returns the value of each metric by its name: the sum of a counter or gauge, the number of a histogram's
// observations, of all series that have the labels, given as name=value.
func (o *Operator) Metrics(t *testing.T, labels []string) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	for name, found := range o.readMetrics(t, labels) {
		out[name] = found.value + float64(found.observations)
	}
	return out
}

// Writes returns the number of the operator's mutating requests so far, failed ones included. Writes of leases are
// among them if the operator takes part in leader election.
func (o *Operator) Writes(t *testing.T) (sum float64) {
	t.Helper()
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
		sum += o.Counted(t, "rest_client_requests_total", "method="+method)
	}
	return sum
}

// Reads returns the number of the operator's GET requests so far, watches included.
func (o *Operator) Reads(t *testing.T) float64 {
	t.Helper()
	return o.Counted(t, "rest_client_requests_total", "method=GET")
}

// having returns the series that have all the labels, given as name=value.
func having[S interface{ GetLabel() []L }, L interface {
	GetName() string
	GetValue() string
}](series []S, labels []string) []S {
	return slices.DeleteFunc(slices.Clone(series), func(s S) bool {
		has := map[string]bool{}
		for _, label := range s.GetLabel() {
			has[label.GetName()+"="+label.GetValue()] = true
		}
		return slices.ContainsFunc(labels, func(label string) bool { return !has[label] })
	})
}

// metric holds the totals of several series of a metric: the value of a counter or gauge, or the number and sum of a
// histogram's observations.
type metric struct {
	value, sum   float64
	observations uint64
}

// readMetrics reads the operator's metrics, and returns the totals by name of all series that have the labels. Metrics
// without such a series are missing.
func (o *Operator) readMetrics(t *testing.T, labels []string) map[string]metric {
	t.Helper()
	response, err := http.Get("http://" + o.metrics + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]metric{}
	for name, family := range families {
		for _, series := range having(family.GetMetric(), labels) {
			total := out[name]
			total.value += series.GetCounter().GetValue() + series.GetGauge().GetValue()
			total.sum += series.GetHistogram().GetSampleSum()
			total.observations += series.GetHistogram().GetSampleCount()
			out[name] = total
		}
	}
	return out
}

// FreeAddress returns a local address with a free port. The port is below the kernel's ephemeral ports and the node
// ports of Services, either of which another process could get before the caller listens.
func FreeAddress(t *testing.T) string {
	t.Helper()
	var err error
	for range 20 {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(20000+rand.IntN(10000)))
		var listener net.Listener
		if listener, err = net.Listen("tcp4", address); err == nil {
			listener.Close()
			return address
		}
	}
	t.Fatalf("finding a free port: %v", err)
	return ""
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
