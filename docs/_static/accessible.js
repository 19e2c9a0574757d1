// What audits of accessibility miss in the theme: levels of headings, names of landmarks, and focus of what scrolls.
addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll(".caption[role=heading]").forEach(each => each.setAttribute("aria-level", 2));
  document.querySelectorAll(".sidebar-drawer").forEach(each => each.setAttribute("aria-label", "all pages"));
  document.querySelectorAll(".toc-drawer").forEach(each => each.setAttribute("aria-label", "this page"));
  document.querySelectorAll("pre, .table-wrapper").forEach(each => { if (each.scrollWidth > each.clientWidth) each.tabIndex = 0; });
});
