// Package operator runs the operator as a child of a test that says by what configuration, and when it begins and ends, or
// of a benchmark, so that the floor can be measured without it. Only they may import it.
package operator

import (
	"bytes"
	"io"
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
	probes  string
	metrics string
	log     bytes.Buffer
	// Began is when it was started.
	Began time.Time
	ended chan struct{}
}

// fieldManager is whose the fields are that the operator sets: what its requests call it.
const fieldManager = "muster-operator"

// namespace is where it keeps what it needs for itself: that of its service account.
const namespace = "muster-system"

// Start starts the binary, with flags of the caller beside its own. It ends with the test, if nobody ends it before. It has the
// rights of the chart, and the test fails if it lacked one.
func Start(t *testing.T, binary string, cluster *testcluster.Cluster, flags ...string) *Operator {
	t.Helper()
	return StartFor(t, binary, cluster, "", flags...)
}

// StartFor is Start with the rights for TrainingJobs of the group; empty for breezeml.ai.
func StartFor(t *testing.T, binary string, cluster *testcluster.Cluster, trainingJobGroup string, flags ...string) *Operator {
	t.Helper()
	grant(t, cluster, trainingJobGroup)
	return StartAs(t, binary, cluster, install.DefaultOperatorUser, append([]string{"--leader-election-namespace", namespace}, flags...)...)
}

// grant gives the operator the rights of the chart.
func grant(t *testing.T, cluster *testcluster.Cluster, trainingJobGroup string) {
	t.Helper()
	rights := install.Rights{User: install.DefaultOperatorUser, Namespace: namespace, TrainingJobGroup: trainingJobGroup}
	if err := install.GrantRights(t.Context(), cluster.Config, rights); err != nil {
		t.Fatalf("granting the operator's rights: %v", err)
	}
}

// StartAs is Start for a service account, named as the API server does, to which others have given its rights.
func StartAs(t *testing.T, binary string, cluster *testcluster.Cluster, user string, flags ...string) *Operator {
	t.Helper()
	awaitRights(t, cluster, user)
	o := &Operator{probes: FreeAddress(t), metrics: FreeAddress(t), Began: time.Now(), ended: make(chan struct{})}
	o.command = exec.Command(binary, append([]string{"--kubeconfig", signIn(t, cluster, user),
		"--leader-elect=false", // after a kill there is nobody to wait for
		"--metrics-bind-address", o.metrics, "--health-probe-bind-address", o.probes}, flags...)...)
	o.command.Stdout, o.command.Stderr = &o.log, &o.log
	o.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // it must not outlive the test
	started := make(chan error)
	go o.live(started)
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
			t.Logf("the last lines of the operator's log:\n%s", lastLines(o.log.String(), 20))
		}
	})
	return o
}

// awaitRights waits until the API server goes by all that the service account was given: at its first request it would tell of what it lacks.
func awaitRights(t *testing.T, cluster *testcluster.Cluster, user string) {
	t.Helper()
	namespace, name, err := serviceaccount.SplitUsername(user)
	if err != nil {
		t.Fatal(err)
	}
	is := func(subject rbacv1.Subject) bool {
		return subject.Kind == rbacv1.ServiceAccountKind && subject.Namespace == namespace && subject.Name == name || subject.Kind == rbacv1.UserKind && subject.Name == user
	}
	var everywhere rbacv1.ClusterRoleBindingList
	var within rbacv1.RoleBindingList
	for _, list := range []client.ObjectList{&everywhere, &within} {
		if err := cluster.Client.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	for i := range everywhere.Items {
		if slices.ContainsFunc(everywhere.Items[i].Subjects, is) {
			cluster.UntilObserved(t, &everywhere.Items[i])
		}
	}
	for i := range within.Items {
		if slices.ContainsFunc(within.Items[i].Subjects, is) {
			cluster.UntilObserved(t, &within.Items[i])
		}
	}
}

// SignIn gives a configuration by which a client is the operator, to the API server as well: with a token of the service account, as a
// pod of its has one, with the rights of the chart, and under the name by which the operator's fields are known as its.
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

// signIn gives a kubeconfig with a token of the service account, so that the API server does for each request what it does for an
// operator in a cluster, and nothing else.
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

// tokenOf is one of the service account, which is made if it is not there.
func tokenOf(t *testing.T, cluster *testcluster.Cluster, account string) string {
	t.Helper()
	namespace, name, err := serviceaccount.SplitUsername(account)
	if err != nil {
		t.Fatal(err)
	}
	accounts := kubernetes.NewForConfigOrDie(cluster.Config).CoreV1().ServiceAccounts(namespace)
	_, err = accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	token, err := accounts.CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("asking for a token of %s: %v", account, err)
	}
	return token.Status.Token
}

// Impersonate gives a configuration by which a client is the operator to the API server.
func Impersonate(config *rest.Config) *rest.Config {
	out := rest.CopyConfig(config)
	out.Impersonate = rest.ImpersonationConfig{UserName: install.DefaultOperatorUser, Groups: []string{"system:masters"}}
	return out
}

// live starts the process and waits for its end on one thread: the kernel takes the
// end of the thread that started a child for the parent's death.
func (o *Operator) live(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := o.command.Start()
	started <- err
	if err == nil {
		_ = o.command.Wait() // how it ended is seen by who waits for something of it
		close(o.ended)
	}
}

// End sends the signal and waits for the end.
func (o *Operator) End(signal syscall.Signal) {
	_ = o.command.Process.Signal(signal) // it may be gone already
	<-o.ended
}

// endsWithin is how long an operator may take that has a reason to end.
const endsWithin = 4 * time.Minute

// AwaitEnd waits until the operator has ended by itself, and gives what it said last.
func (o *Operator) AwaitEnd(t *testing.T) string {
	t.Helper()
	select {
	case <-o.ended:
	case <-time.After(endsWithin):
		t.Fatalf("the operator has not ended within %s", endsWithin)
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
	return lastLines(o.log.String(), 5)
}

// AwaitReady waits until the operator says that it has read what the cluster has,
// and gives the time from its start.
func (o *Operator) AwaitReady(t *testing.T) time.Duration {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		if o.Readiness() == http.StatusOK {
			return time.Since(o.Began)
		}
		select {
		case <-ticker.C: // there is nothing to subscribe to
		case <-o.ended:
			t.Fatal("the operator ended before it was ready")
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
}

// Readiness is the status with which the operator answers whether it is ready, 0 while it answers nobody.
func (o *Operator) Readiness() int {
	response, err := http.Get("http://" + o.probes + "/readyz")
	if err != nil {
		return 0
	}
	response.Body.Close()
	return response.StatusCode
}

// Observed is how often a histogram of the operator was told something, and the sum of it: of all its series, or of those
// that have the labels, as name=value.
func (o *Operator) Observed(t *testing.T, histogram string, labels ...string) (count uint64, sum float64) {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(o.readMetrics(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range having(families[histogram].GetMetric(), labels) {
		count += m.GetHistogram().GetSampleCount()
		sum += m.GetHistogram().GetSampleSum()
	}
	return count, sum
}

// Counted is what a counter of the operator has come to: all its series, or those that have the labels, as name=value.
func (o *Operator) Counted(t *testing.T, counter string, labels ...string) (sum float64) {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(o.readMetrics(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range having(families[counter].GetMetric(), labels) {
		sum += m.GetCounter().GetValue()
	}
	return sum
}

// Shown is what each metric comes to, by its name: the sum of counters and gauges, and of how often histograms were told something, of all
// its series or of those that have the labels, as name=value.
func (o *Operator) Shown(t *testing.T, labels []string) map[string]float64 {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(o.readMetrics(t))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for name, family := range families {
		for _, m := range having(family.GetMetric(), labels) {
			out[name] += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return out
}

// Writes are the requests of the operator so far that would change something, those that failed included. One that elects no
// leader writes no leases.
func (o *Operator) Writes(t *testing.T) (sum float64) {
	t.Helper()
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
		sum += o.Counted(t, "rest_client_requests_total", "method="+method)
	}
	return sum
}

// Reads are the requests of the operator so far that change nothing, watches that were begun among them.
func (o *Operator) Reads(t *testing.T) float64 {
	t.Helper()
	return o.Counted(t, "rest_client_requests_total", "method=GET")
}

// having are those of the series that have all the labels, as name=value.
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

// readMetrics is what the operator tells of itself.
func (o *Operator) readMetrics(t *testing.T) io.Reader {
	t.Helper()
	response, err := http.Get("http://" + o.metrics + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(text)
}

// FreeAddress is one of this machine that nobody listens on. Its port is below those that the kernel gives to whoever connects
// or asks for any, and those of Services: one of these that is free now may be somebody's before the operator listens.
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
