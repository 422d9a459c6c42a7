package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/musterhq/muster/api/config/v1alpha1"
)

// errVolcanoInstalled ends an operator that runs VCJobs when Volcano is installed: after a restart it leaves them to
// Volcano.
var errVolcanoInstalled = errors.New("the scheduler Volcano was installed and runs VCJobs from now on: restart the operator, which then leaves them alone")

// retryInterval is the delay before asking again which controller runs VCJobs, after an error of the API server.
const retryInterval = time.Second

// volcanoWatch ends the operator when Volcano's definitions are installed, so that no VCJob has two controllers.
type volcanoWatch struct {
	cache  cache.Cache
	config *rest.Config
	mode   v1alpha1.VolcanoMode
}

// StandDownForVolcano makes the manager end when the operator must not run VCJobs any more. It does nothing if the
// configuration says which controller runs them: then only a new configuration changes that.
func StandDownForVolcano(mgr manager.Manager, mode v1alpha1.VolcanoMode) error {
	if mode != v1alpha1.VolcanoAuto {
		return nil
	}
	return mgr.Add(volcanoWatch{mgr.GetCache(), mgr.GetConfig(), mode})
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: replicas that do not lead must stop as well.
func (v volcanoWatch) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable: it returns an error once Volcano runs the VCJobs.
func (v volcanoWatch) Start(ctx context.Context) error {
	definition := &metav1.PartialObjectMetadata{}
	definition.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	definitions, err := v.cache.GetInformer(ctx, definition)
	if err != nil {
		return fmt.Errorf("watching definitions: %w", err)
	}
	changed := make(chan struct{}, 1)
	notify := func(object any) {
		if o, ok := object.(client.Object); ok && slices.Contains(volcanoDefinitions, o.GetName()) {
			select {
			case changed <- struct{}{}:
			default:
			}
		}
	}
	if _, err := definitions.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: notify,
		UpdateFunc: func(_, o any) { notify(o) }, DeleteFunc: notify}); err != nil {
		return fmt.Errorf("watching definitions: %w", err)
	}
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-again:
		}
		again = nil
		switch came, err := VolcanoRunsJobs(ctx, v.config, v.mode); {
		case err != nil:
			ctrl.Log.WithName("volcano").Error(err, "asking whether Volcano was installed")
			again = time.After(retryInterval)
		case came:
			return errors.Join(errVolcanoInstalled, v.recordEvent(ctx, definition.GroupVersionKind()))
		}
	}
}

// recordEvent records an event for users. It writes the event directly, because a recorder would not get to write it
// before the operator ends.
func (v volcanoWatch) recordEvent(ctx context.Context, definition schema.GroupVersionKind) error {
	version, kind := definition.ToAPIVersionAndKind()
	event := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: volcanoDefinitions[0] + "-", Namespace: metav1.NamespaceDefault},
		EventTime:  metav1.NowMicro(), ReportingController: "muster", ReportingInstance: "muster-operator",
		Type: corev1.EventTypeWarning, Reason: "VolcanoInstalled", Action: "StandingDown",
		Regarding: corev1.ObjectReference{APIVersion: version, Kind: kind, Name: volcanoDefinitions[0]},
		Note:      "Volcano was installed: Muster leaves VCJobs to it from now on. VCJobs that Muster has run keep their pods and quota until they are deleted",
	}
	clients, err := kubernetes.NewForConfig(v.config)
	if err != nil {
		return err
	}
	if _, err := clients.EventsV1().Events(event.Namespace).Create(ctx, event, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("recording that Volcano was installed: %w", err)
	}
	return nil
}
