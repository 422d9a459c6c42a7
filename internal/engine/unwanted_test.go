package engine

import (
	"slices"
	"testing"
	"time"
)

// wants returns the job once it wants at most this number of pods, 0 for as many as it was admitted with.
func (s *scene) wants(name string, most int32) WorkloadSet {
	return s.changed(name, func(w *Workload) {
		w.PodSets = slices.Clone(w.PodSets)
		w.PodSets[0].Wanted = most
	})
}

// TestUnwantedPodsAreGivenToOthers: once they are gone. The job grows again if it wants more, into what is free then.
func TestUnwantedPodsAreGivenToOthers(t *testing.T) {
	s := newScene(t, Options{}, queueOf("q", "", 4), localOf("q"), between("job", 1, 4, 0, 0))
	s.areSized("alone", []string{"job"}, 4)
	s.happens(between("other", 1, 1, -1, 1))
	s.want("it wants fewer", s.happens(s.wants("job", 2)), "resize job from 4 to 2", "other waits: WaitingForPreemptedWorkloads")
	s.want("its pods are gone", s.happens(s.shrunk("job")), "admit other in q")
	s.now = s.now.Add(time.Hour)
	s.want("it may not grow", s.happens())
	s.want("it wants a few more", s.happens(s.wants("job", 3)), "resize job from 2 to 3")
	s.now = s.now.Add(time.Hour)
	s.want("it wants all", s.happens(s.wants("job", 0)), "evict other for job: in queue")
}

// TestJobThatWantsLessThanItsMinimumKeepsThat: the API server rejects fewer pods than the admitted minimum.
func TestJobThatWantsLessThanItsMinimumKeepsThat(t *testing.T) {
	s := newScene(t, Options{}, queueOf("q", "", 4), localOf("q"), between("job", 3, 4, 0, 0))
	s.areSized("alone", []string{"job"}, 4)
	s.want("it wants one", s.happens(s.wants("job", 1)), "resize job from 4 to 3")
	s.happens(s.shrunk("job"))
	s.want("an equal needs all", s.happens(between("other", 4, 4, 0, 1)), "other waits: WaitingForQuota")
	s.want("it wants all again", s.happens(gone("other"), s.wants("job", 0)), "resize job from 3 to 4")
}

// TestNewEngineShrinksJobsThatWantLess: from the state that it starts with.
func TestNewEngineShrinksJobsThatWantLess(t *testing.T) {
	s := newScene(t, Options{}, queueOf("q", "", 4), localOf("q"), between("job", 1, 4, 0, 0))
	s.areSized("alone", []string{"job"}, 4)
	s.engine = New(Options{})
	s.want("it starts", s.happens(queueOf("q", "", 4), localOf("q"), s.wants("job", 2)), "resize job from 4 to 2")
	s.want("and is done", s.happens())
}

// TestRejectedShrinkIsRetried: the job keeps its pods until then.
func TestRejectedShrinkIsRetried(t *testing.T) {
	s := newScene(t, Options{}, queueOf("q", "", 4), localOf("q"), between("job", 1, 4, 0, 0))
	s.areSized("alone", []string{"job"}, 4)
	s.engine.Apply(s.wants("job", 2))
	decided := s.engine.Decide(s.now)
	if len(decided) != 1 || decided[0].Resize == nil || !decided[0].Resize.Unwanted {
		t.Fatalf("decided %+v", decided)
	}
	s.want("it is refused", s.happens(s.refused(decided[0])))
	s.now = s.now.Add(time.Minute)
	s.want("time goes by", s.happens(), "resize job from 4 to 2")
}
