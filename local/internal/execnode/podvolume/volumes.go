package podvolume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/kubernetes/pkg/volume"
	"k8s.io/kubernetes/pkg/volume/configmap"
	"k8s.io/kubernetes/pkg/volume/downwardapi"
	"k8s.io/kubernetes/pkg/volume/emptydir"
	"k8s.io/kubernetes/pkg/volume/hostpath"
	"k8s.io/kubernetes/pkg/volume/projected"
	"k8s.io/kubernetes/pkg/volume/secret"
	volumeutil "k8s.io/kubernetes/pkg/volume/util"
)

// Options configure Volumes.
type Options struct {
	// Dir is for what the plugins keep beside pods; PodDir gives the directory of a pod.
	Dir    string
	PodDir func(types.UID) string
	// MemoryDir is a directory in memory, for volumes that must not be on a disk. It is emptied at the start and removed
	// by Close. Directories beside it whose names differ only after the last dash count as directories of other nodes, and
	// are removed if their nodes have died.
	MemoryDir   string
	NodeName    string
	Allocatable corev1.ResourceList
	Client      clientset.Interface
	Recorder    record.EventRecorder
	ConfigMap   func(namespace, name string) (*corev1.ConfigMap, error)
	Secret      func(namespace, name string) (*corev1.Secret, error)
	Token       func(namespace, name string,
		request *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error)
}

// Volumes makes the volumes of pods. Safe for concurrent use with different pods.
type Volumes struct {
	options Options
	plugins *volume.VolumePluginMgr
	claimed *os.File // the memory directory, locked
}

// Volume is one volume that was made.
type Volume struct {
	// Path of this machine; a directory, but for host paths of other types.
	Path string
	// ReadOnly is set if no container may write to it.
	ReadOnly bool
}

// New returns the volumes of a node. What an earlier run left in memory is removed. Close must be called.
func New(options Options) (*Volumes, error) {
	claimed, err := claim(options.MemoryDir)
	if err != nil {
		return nil, err
	}
	v := &Volumes{options: options, plugins: &volume.VolumePluginMgr{}, claimed: claimed}
	h := &host{options: options, plugins: v.plugins, memory: memory{root: options.MemoryDir}}
	var plugins []volume.VolumePlugin
	for _, probe := range [][]volume.VolumePlugin{
		emptydir.ProbeVolumePlugins(), configmap.ProbeVolumePlugins(), secret.ProbeVolumePlugins(),
		downwardapi.ProbeVolumePlugins(), projected.ProbeVolumePlugins(), hostpath.ProbeVolumePlugins(volume.VolumeConfig{}),
	} {
		plugins = append(plugins, probe...)
	}
	if err := v.plugins.InitPlugins(plugins, nil, h); err != nil {
		v.Close()
		return nil, fmt.Errorf("preparing the volume plugins: %w", err)
	}
	return v, nil
}

// UnsupportedError is a volume that this node never makes.
type UnsupportedError struct{ Volume, Why string }

func (u *UnsupportedError) Error() string {
	return fmt.Sprintf("volume %q is %s, which this node cannot make; use emptyDir, configMap, secret, downwardAPI, projected, hostPath or a claim on a hostPath or local volume", u.Volume, u.Why)
}

// SetUp creates all volumes of a pod, or updates the volumes whose content follows objects of the cluster. An error
// other than UnsupportedError may be temporary: a ConfigMap may not exist yet, or a claim not be bound.
func (v *Volumes) SetUp(ctx context.Context, pod *corev1.Pod) (map[string]Volume, error) {
	made := make(map[string]Volume, len(pod.Spec.Volumes))
	var failures []error
	for i := range pod.Spec.Volumes {
		spec := pod.Spec.Volumes[i].DeepCopy()
		one, err := v.setUp(ctx, pod, spec)
		if err != nil {
			failures = append(failures, fmt.Errorf("volume %q: %w", spec.Name, err))
			continue
		}
		made[spec.Name] = one
	}
	return made, errors.Join(failures...)
}

func (v *Volumes) setUp(ctx context.Context, pod *corev1.Pod, declared *corev1.Volume) (Volume, error) {
	source, readOnly, err := v.behindClaim(ctx, pod, declared)
	if err != nil {
		return Volume{}, err
	}
	spec := volume.NewSpecFromVolume(source)
	plugin, err := v.plugins.FindPluginBySpec(spec)
	if err != nil {
		return Volume{}, &UnsupportedError{Volume: declared.Name, Why: "of a kind that needs a driver"}
	}
	mounter, err := plugin.NewMounter(spec, pod)
	if err != nil {
		return Volume{}, err
	}
	arguments := volume.MounterArgs{Recorder: v.options.Recorder}
	if security := pod.Spec.SecurityContext; security != nil && os.Geteuid() == 0 {
		// without root, all files stay this user's
		arguments.FsGroup, arguments.FSGroupChangePolicy = security.FSGroup, security.FSGroupChangePolicy
		arguments.FsUser = volumeutil.FsUserFrom(pod)
	}
	if err := mounter.SetUp(arguments); err != nil {
		return Volume{}, err
	}
	if source.EmptyDir != nil {
		// Create the mount points of what containers mount inside it. The plugins of the read-only kinds do so
		// themselves.
		if err := volumeutil.MakeNestedMountpoints(declared.Name, mounter.GetPath(), *pod); err != nil {
			return Volume{}, err
		}
	}
	return Volume{Path: mounter.GetPath(), ReadOnly: readOnly || mounter.GetAttributes().ReadOnly}, nil
}

// behindClaim returns the volume bound to a claim as a hostPath volume, and every other volume as it is.
func (v *Volumes) behindClaim(ctx context.Context, pod *corev1.Pod,
	declared *corev1.Volume) (*corev1.Volume, bool, error) {
	name, readOnly := "", false
	switch {
	case declared.PersistentVolumeClaim != nil:
		name, readOnly = declared.PersistentVolumeClaim.ClaimName, declared.PersistentVolumeClaim.ReadOnly
	case declared.Ephemeral != nil:
		name = pod.Name + "-" + declared.Name
	default:
		return declared, false, nil
	}
	claim, err := v.options.Client.CoreV1().PersistentVolumeClaims(pod.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, false, err
	}
	if claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName == "" {
		return nil, false, fmt.Errorf("claim %s is not bound to a volume yet; this cluster has no storage of its own, so make a PersistentVolume with a hostPath for it", name)
	}
	bound, err := v.options.Client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return nil, false, err
	}
	path := &corev1.HostPathVolumeSource{}
	switch {
	case bound.Spec.HostPath != nil:
		path = bound.Spec.HostPath
	case bound.Spec.Local != nil:
		path.Path = bound.Spec.Local.Path
	default:
		return nil, false, &UnsupportedError{Volume: declared.Name,
			Why: "a claim on volume " + bound.Name + ", which is not a path of a machine"}
	}
	return &corev1.Volume{Name: declared.Name, VolumeSource: corev1.VolumeSource{HostPath: path}}, readOnly, nil
}

// Changing reports whether the pod has volumes whose content may change while it runs.
func Changing(pod *corev1.Pod) bool {
	for _, declared := range pod.Spec.Volumes {
		if declared.ConfigMap != nil || declared.Secret != nil || declared.DownwardAPI != nil || declared.Projected != nil {
			return true
		}
	}
	return false
}

// Remove removes the in-memory parts of a pod's volumes. The rest is removed with the pod's directory.
func (v *Volumes) Remove(pod types.UID) error {
	return os.RemoveAll(filepath.Join(v.options.MemoryDir, string(pod)))
}

// Close removes what all volumes have in memory. The containers that use them must have ended.
func (v *Volumes) Close() error {
	defer v.claimed.Close()
	return os.RemoveAll(v.options.MemoryDir)
}
