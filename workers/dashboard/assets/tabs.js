// The tabs of a feed: see workers/dashboard/tabs.py. Events tell of a shadow tree by their path.
function tabOf(event) {
  const found = event.composedPath()[0]
  return found instanceof Element ? found.closest("[role=tab]") : null
}

function select(tab) {
  for (const other of tab.parentElement.children) {
    const isChosen = other === tab
    other.setAttribute("aria-selected", isChosen)
    other.tabIndex = isChosen ? 0 : -1
    for (const document of Bokeh.documents) {
      const panel = document.get_model_by_name(`tab ${other.dataset.tab}`)
      if (panel !== null) panel.visible = isChosen
    }
  }
  tab.focus()
  const url = new URL(window.location)
  url.searchParams.set("tab", tab.dataset.tab)
  window.history.replaceState(null, "", url)
}

document.addEventListener("click", (event) => {
  const tab = tabOf(event)
  if (tab !== null) select(tab)
})
document.addEventListener("keydown", (event) => {
  const tab = tabOf(event)
  if (tab === null) return
  const all = [...tab.parentElement.children]
  const last = all.length - 1, at = all.indexOf(tab)
  const next = {ArrowRight: at === last ? 0 : at + 1, ArrowLeft: at === 0 ? last : at - 1,
    Home: 0, End: last}[event.key]
  if (next === undefined) return
  event.preventDefault()
  select(all[next])
})
