package place

// Diagnose says why the asks have no places.
func (m *Map) Diagnose(asks []Ask) Diagnosis {
	_, short := m.Find(asks, Now)
	if short == nil {
		return Diagnosis{Fits: true}
	}
	return Diagnosis{PodSets: []AskDiagnosis{{Shortfall: *short}}}
}
