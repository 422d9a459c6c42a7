package podvolume

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/kubernetes/pkg/volume"
	"k8s.io/kubernetes/pkg/volume/util/hostutil"
	"k8s.io/kubernetes/pkg/volume/util/subpath"
	"k8s.io/mount-utils"
	utilstrings "k8s.io/utils/strings"
)

// host is the node as the kubelet's volume plugins see it.
type host struct {
	options Options
	plugins *volume.VolumePluginMgr
	memory  memory
}

var (
	_ volume.VolumeHost        = &host{}
	_ volume.KubeletVolumeHost = &host{}
)

func (h *host) GetPluginDir(name string) string {
	return filepath.Join(h.options.Dir, "plugins", utilstrings.EscapeQualifiedName(name))
}
func (h *host) GetVolumeDevicePluginDir(name string) string { return h.GetPluginDir(name) }
func (h *host) GetPodsDir() string                          { return h.options.Dir }

func (h *host) GetPodVolumeDir(pod types.UID, plugin, name string) string {
	return filepath.Join(h.options.PodDir(pod), "volumes", plugin, name)
}

func (h *host) GetPodPluginDir(pod types.UID, plugin string) string {
	return filepath.Join(h.options.PodDir(pod), "plugins", plugin)
}

func (h *host) GetPodVolumeDeviceDir(pod types.UID, plugin string) string {
	return filepath.Join(h.options.PodDir(pod), "volumeDevices", plugin)
}

// NewWrapperMounter returns the directory that a plugin writes its files to.
func (h *host) NewWrapperMounter(name string, spec volume.Spec, pod *corev1.Pod) (volume.Mounter, error) {
	wrapped := "wrapped_" + name
	if spec.Volume != nil {
		spec.Volume.Name = wrapped
	}
	plugin, err := h.plugins.FindPluginBySpec(&spec)
	if err != nil {
		return nil, err
	}
	return plugin.NewMounter(&spec, pod)
}

func (h *host) NewWrapperUnmounter(name string, spec volume.Spec, pod types.UID) (volume.Unmounter, error) {
	plugin, err := h.plugins.FindPluginBySpec(&spec)
	if err != nil {
		return nil, err
	}
	return plugin.NewUnmounter("wrapped_"+name, pod)
}

func (h *host) GetMounter() mount.Interface                         { return h.memory }
func (h *host) GetKubeClient() clientset.Interface                  { return h.options.Client }
func (h *host) GetNodeName() types.NodeName                         { return types.NodeName(h.options.NodeName) }
func (h *host) GetEventRecorder() record.EventRecorder              { return h.options.Recorder }
func (h *host) GetNodeAllocatable() (corev1.ResourceList, error)    { return h.options.Allocatable, nil }
func (h *host) GetNodeLabels() (map[string]string, error)           { return nil, nil }
func (h *host) GetSubpather() subpath.Interface                     { return subpath.New(h.memory) }
func (h *host) GetHostUtil() hostutil.HostUtils                     { return hostutil.NewHostUtil() }
func (h *host) GetInformerFactory() informers.SharedInformerFactory { return nil }
func (h *host) CSIDriverLister() storagelisters.CSIDriverLister     { return nil }
func (h *host) CSIDriversSynced() cache.InformerSynced              { return func() bool { return true } }
func (h *host) WaitForCacheSync() error                             { return nil }
func (h *host) SetKubeletError(error)                               {}

func (h *host) GetAttachedVolumesFromNodeStatus() (map[corev1.UniqueVolumeName]string, error) {
	return nil, nil
}

func (h *host) GetSecretFunc() func(namespace, name string) (*corev1.Secret, error) {
	return h.options.Secret
}

func (h *host) GetConfigMapFunc() func(namespace, name string) (*corev1.ConfigMap, error) {
	return h.options.ConfigMap
}

func (h *host) GetServiceAccountTokenFunc() func(namespace, name string,
	request *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	return h.options.Token
}

func (h *host) DeleteServiceAccountTokenFunc() func(types.UID) { return func(types.UID) {} }

// errNotHere is returned for sources of projected volumes that need controllers which this node does not have.
var errNotHere = errors.New("this node does not serve it; leave it out of the pod")

func (h *host) GetTrustAnchorsByName(_ context.Context, name string, allowMissing bool) ([]byte, error) {
	if allowMissing {
		return nil, nil
	}
	return nil, fmt.Errorf("cluster trust bundle %s: %w", name, errNotHere)
}

func (h *host) GetTrustAnchorsBySigner(_ context.Context, signer string, _ *metav1.LabelSelector,
	allowMissing bool) ([]byte, error) {
	if allowMissing {
		return nil, nil
	}
	return nil, fmt.Errorf("cluster trust bundles of %s: %w", signer, errNotHere)
}

func (h *host) GetPodCertificateCredentialBundle(_ context.Context, _, _, _, volume string,
	_ int) ([]byte, []byte, error) {
	return nil, nil, fmt.Errorf("pod certificate in volume %s: %w", volume, errNotHere)
}
