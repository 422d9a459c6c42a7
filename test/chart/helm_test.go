package chart

import (
	"errors"
	"fmt"
	"testing"

	"helm.sh/helm/v3/pkg/action"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/release"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"

	"github.com/musterhq/muster/internal/testcluster"
)

const (
	folder    = "../../charts/muster"
	name      = "operator"
	namespace = "lattice"
)

func TestMain(m *testing.M) { testcluster.Main(m, testcluster.Options{NoAPIs: true, SimNodes: 2}) }

// values are values of a chart, or of a section of it.
type values = map[string]any

// helm installs the chart on the test cluster, as the release "operator" in the namespace "lattice". Everything is
// removed at the end of the test, also if it fails.
type helm struct {
	t      *testing.T
	config *action.Configuration
}

func newHelm(t *testing.T) helm {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(false)
	kubeconfig, in := testcluster.Get(t).Kubeconfig, namespace
	flags.KubeConfig, flags.Namespace = &kubeconfig, &in
	flags.WrapConfigFn = func(c *rest.Config) *rest.Config {
		c.QPS, c.RateLimiter = -1, nil // no client-side rate limit
		return c
	}
	config := &action.Configuration{}
	if err := config.Init(flags, namespace, "secret", func(string, ...any) {}); err != nil {
		t.Fatal(err)
	}
	h := helm{t, config}
	t.Cleanup(h.clear)
	return h
}

// load reads the chart. Each use needs a copy of its own, because Helm changes the chart that it is given.
func load(t *testing.T) *helmchart.Chart {
	t.Helper()
	c, err := loader.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (h helm) installer() *action.Install {
	install := action.NewInstall(h.config)
	install.ReleaseName, install.Namespace, install.CreateNamespace = name, namespace, true
	return install
}

func (h helm) install(with values) *release.Release {
	h.t.Helper()
	installed, err := h.installer().Run(load(h.t), with)
	if err != nil {
		h.t.Fatalf("helm install: %v", err)
	}
	return installed
}

func (h helm) upgrade(with values) {
	h.t.Helper()
	upgrade := action.NewUpgrade(h.config)
	upgrade.Namespace, upgrade.ResetThenReuseValues = namespace, true
	if _, err := upgrade.Run(name, load(h.t), with); err != nil {
		h.t.Fatalf("helm upgrade: %v", err)
	}
}

func (h helm) uninstall() {
	h.t.Helper()
	if _, err := action.NewUninstall(h.config).Run(name); err != nil {
		h.t.Fatalf("helm uninstall: %v", err)
	}
}

// clear uninstalls the release, if there is one, and deletes the definitions, which Helm keeps, with all their objects.
func (h helm) clear() {
	uninstall := action.NewUninstall(h.config)
	uninstall.IgnoreNotFound = true
	if _, err := uninstall.Run(name); err != nil {
		h.t.Errorf("helm uninstall: %v", err)
	}
	removeFinalizers(h.t)
	deleteDefinitions(h.t)
}

// render returns the manifest that Helm would apply, without a cluster, as `helm template --kube-version
// --api-versions` does.
func render(t *testing.T, version string, with values, apis ...string) (string, error) {
	t.Helper()
	install := action.NewInstall(&action.Configuration{})
	install.ReleaseName, install.Namespace = name, namespace
	install.DryRun, install.DryRunOption, install.ClientOnly = true, "client", true
	install.APIVersions = apis
	kube, err := chartutil.ParseKubeVersion(version)
	if err != nil {
		t.Fatal(err)
	}
	install.KubeVersion = kube
	rendered, err := install.Run(load(t), with)
	if err != nil {
		return "", err
	}
	return rendered.Manifest, nil
}

// lint returns the warnings and errors of `helm lint --strict`.
func lint(with values) error {
	linter := action.NewLint()
	linter.Strict, linter.Namespace = true, namespace
	result := linter.Run([]string{folder}, with)
	err := errors.Join(result.Errors...)
	for _, message := range result.Messages {
		if message.Severity > 1 { // 1 is information
			err = errors.Join(err, fmt.Errorf("%s", message))
		}
	}
	return err
}
